"""Agents as their papers state them, in float64: networks, losses and Adam written out anew.

Only gradients are JAX's. Parameters are those of the library's own networks, in float64.
"""

import jax
import jax.numpy as jnp
import numpy as np


def widened(tree):
    """The same numbers in float64."""
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, np.float64)), tree)


def layer(params, x):
    return x @ params["kernel"] + params["bias"]


def mlp(params, x):
    for name in sorted(params):
        x = jnp.maximum(layer(params[name], x), 0)
    return x


def with_noise(params, noise):
    """Noisy layers as plain ones: Fortunato et al. 2018, equations 9 to 11.

    `noise` holds the standard normal numbers of each layer, of its inputs and then its outputs.
    """
    if "kernel" not in params:
        return {name: with_noise(each, noise[name]) for name, each in params.items()}
    scaled = jnp.sign(noise) * jnp.sqrt(jnp.abs(noise))
    inputs, outputs = jnp.split(scaled, [len(params["kernel"])])
    return {
        "kernel": params["kernel"] + params["kernel_deviation"] * jnp.outer(inputs, outputs),
        "bias": params["bias"] + params["bias_deviation"] * outputs,
    }


class Adam:
    """Kingma and Ba 2015, algorithm 1."""

    def __init__(self, params):
        self.mean = jax.tree.map(jnp.zeros_like, params)
        self.square = jax.tree.map(jnp.zeros_like, params)
        self.steps = 0

    def step(self, params, gradients, rate):
        self.steps += 1
        self.mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, self.mean, gradients)
        self.square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, self.square, gradients)
        one, two = 1 - 0.9**self.steps, 1 - 0.999**self.steps
        return jax.tree.map(
            lambda p, m, v: p - rate * (m / one) / (jnp.sqrt(v / two) + 1e-8),
            params, self.mean, self.square,
        )  # fmt: skip


def cost(name, error):
    if name == "huber":
        return jnp.where(jnp.abs(error) <= 1, error**2 / 2, jnp.abs(error) - 0.5)
    return error**2 / 2


class DQN:
    """Mnih et al. 2015; van Hasselt 2016; Wang 2016; Bellemare 2017; Dabney; Fortunato 2018."""

    def __init__(
        self, params, *, double, dueling, loss, distributional, atoms, low, high, rate, period
    ):
        self.params, self.target = widened(params), widened(params)
        self.adam, self.count = Adam(self.params), 0
        self.double, self.dueling, self.loss = double, dueling, loss
        self.kind, self.rate, self.period = distributional, rate, period
        self.atoms = np.linspace(low, high, atoms) if distributional == "c51" else None
        self.number = atoms if distributional else 1
        self._gradient = jax.jit(jax.grad(self._total))

    def outputs(self, params, x, noise):
        params = params["params"] if noise is None else with_noise(params["params"], noise)
        x = mlp(params["torso"], x)
        values = layer(params["values"], x).reshape(len(x), -1, self.number)
        if self.dueling:
            state = layer(params["state_value"], x).reshape(len(x), 1, self.number)
            values = state + values - values.mean(1, keepdims=True)
        return values

    def means(self, outputs):
        if self.kind == "c51":
            return jax.nn.softmax(outputs, axis=-1) @ self.atoms
        return outputs.mean(-1)

    def targets(self, batch, noise):
        """Numbers that the loss takes as given: the distribution, or points, of the return."""
        online, target = noise
        following = self.outputs(self.target, batch["next"], target)
        chooser = self.outputs(self.params, batch["next"], online) if self.double else following
        best = jnp.argmax(self.means(chooser), axis=1)
        chosen = np.asarray(following[jnp.arange(len(best)), best])
        reward, discount = batch["reward"][:, None], batch["discount"][:, None]
        if self.kind != "c51":
            return reward + discount * chosen
        probability = np.asarray(jax.nn.softmax(chosen, axis=-1))
        gap = self.atoms[1] - self.atoms[0]
        place = np.clip(reward + discount * self.atoms, self.atoms[0], self.atoms[-1])
        place = (place - self.atoms[0]) / gap
        found = np.zeros_like(probability)
        for row in range(len(place)):
            for atom, where in enumerate(place[row]):
                low = min(int(np.floor(where)), len(self.atoms) - 2)
                found[row, low] += probability[row, atom] * (low + 1 - where)
                found[row, low + 1] += probability[row, atom] * (where - low)
        return found

    def _total(self, params, batch, targets, weights, noise):
        now = self.outputs(params, batch["observation"], noise)
        now = now[jnp.arange(len(weights)), batch["action"]]
        if self.kind == "c51":
            losses = -jnp.sum(targets * jax.nn.log_softmax(now, axis=-1), axis=-1)
        elif self.kind == "quantile":
            middle = (np.arange(self.number) + 0.5) / self.number
            error = targets[:, None, :] - now[:, :, None]
            share = jnp.abs(middle[:, None] - (error < 0))
            losses = jnp.sum(jnp.mean(share * cost("huber", error), axis=2), axis=1)
        else:
            losses = cost(self.loss, targets - now)[:, 0]
        return jnp.mean(weights * losses)

    def learn(self, batch, weights, noise):
        noise = (None, None) if noise is None else noise  # of the online and the target network
        targets = self.targets(batch, noise)
        gradients = self._gradient(self.params, batch, targets, weights, noise[0])
        self.params = self.adam.step(self.params, gradients, self.rate)
        self.count += 1
        if self.count % self.period == 0:
            self.target = self.params


class ActorCritic:
    """Critics and Polyak-averaged targets, which DDPG, TD3 and SAC share."""

    def __init__(self, actor, critics, rate, tau, loss="squared"):
        self.actor, self.critics = widened(actor), widened(critics)
        self.actor_target, self.critics_target = self.actor, self.critics
        self.actor_adam, self.critics_adam = Adam(self.actor), Adam(self.critics)
        self.rate, self.tau, self.loss, self.count = rate, tau, loss, 0

    def values(self, critics, x, action):
        joined = jnp.concatenate([x, action], axis=1)

        def one(params):
            return layer(params["value"], mlp(params["body"], joined))[:, 0]

        return jax.vmap(one)(critics["params"])  # [C, B]

    def fit(self, batch, weights, target):
        def total(critics):
            error = target - self.values(critics, batch["observation"], batch["action"])
            return jnp.mean(weights * jnp.sum(cost(self.loss, error), axis=0))

        gradients = jax.grad(total)(self.critics)
        self.critics = self.critics_adam.step(self.critics, gradients, self.rate)

    def improve(self, total):
        self.actor = self.actor_adam.step(self.actor, jax.grad(total)(self.actor), self.rate)

    def follow(self):
        def mean(new, old):
            return self.tau * new + (1 - self.tau) * old

        self.actor_target = jax.tree.map(mean, self.actor, self.actor_target)
        self.critics_target = jax.tree.map(mean, self.critics, self.critics_target)


class Deterministic(ActorCritic):
    """Lillicrap et al. 2016; with smoothing and a delay Fujimoto et al. 2018."""

    def __init__(self, *parts, smoothing=None, delay=1, **rates):
        super().__init__(*parts, **rates)
        self.smoothing, self.delay = smoothing, delay

    def act(self, params, x):
        params = params["params"]
        return jnp.tanh(layer(params["action"], mlp(params["body"], x)))

    def learn(self, batch, weights, noise):
        following = self.act(self.actor_target, batch["next"])
        if self.smoothing:
            scale, most = self.smoothing
            following = jnp.clip(following + jnp.clip(scale * noise, -most, most), -1, 1)
        q = jnp.min(self.values(self.critics_target, batch["next"], following), axis=0)
        self.fit(batch, weights, batch["reward"] + batch["discount"] * q)
        self.count += 1
        if self.count % self.delay:
            return

        def total(actor):
            action = self.act(actor, batch["observation"])
            return -jnp.mean(self.values(self.critics, batch["observation"], action)[0])

        self.improve(total)
        self.follow()


class SAC(ActorCritic):
    """Haarnoja et al. 2018, with the temperature learned (arXiv 1812.05905, equation 18)."""

    def __init__(self, *parts, entropy, **rates):
        super().__init__(*parts, **rates)
        self.log_temperature, self.entropy = jnp.zeros(()), entropy
        self.temperature_adam = Adam(self.log_temperature)

    def sample(self, actor, x, noise):
        params = actor["params"]
        numbers = layer(params["distribution"], mlp(params["body"], x))
        mean, log_std = jnp.split(numbers, 2, axis=1)
        log_std = jnp.clip(log_std, -20, 2)
        raw = mean + jnp.exp(log_std) * noise
        gaussian = -0.5 * noise**2 - log_std - 0.5 * np.log(2 * np.pi)
        # log(1 - tanh(u)^2) without cancellation.
        squash = 2 * (np.log(2) - raw - jnp.logaddexp(0, -2 * raw))
        return jnp.tanh(raw), jnp.sum(gaussian - squash, axis=1)

    def learn(self, batch, weights, noise):
        temperature = jnp.exp(self.log_temperature)
        following, log_prob = self.sample(self.actor, batch["next"], noise[0])
        q = jnp.min(self.values(self.critics_target, batch["next"], following), axis=0)
        target = batch["reward"] + batch["discount"] * (q - temperature * log_prob)
        self.fit(batch, weights, target)

        def total(actor):
            action, log_prob = self.sample(actor, batch["observation"], noise[1])
            q = jnp.min(self.values(self.critics, batch["observation"], action), axis=0)
            return jnp.mean(temperature * log_prob - q), log_prob

        gradients, log_prob = jax.grad(total, has_aux=True)(self.actor)
        self.actor = self.actor_adam.step(self.actor, gradients, self.rate)
        slope = -temperature * jnp.mean(log_prob + self.entropy)
        self.log_temperature = self.temperature_adam.step(self.log_temperature, slope, self.rate)
        self.follow()
