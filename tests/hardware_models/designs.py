"""Small AM hardware, whose latency can be worked by hand."""

from accel_rl.hardware_models import associative_memory as hardware
from accel_rl.hardware_models.associative_memory import Design, modelled_sample

# Round numbers, so that a result can be worked by hand.
ROUND = {
    "search_delay": 2.0,
    "search_energy": 1.0,
    "write_delay": 30.0,
    "write_energy": 5.0,
    "adder_delay": 0.5,
    "adder_energy": 0.01,
    "register_delay": 1.0,
    "register_energy": 0.1,
    "encoder_delay": 0.25,
    "encoder_energy": 0.2,
    "decoder_delay": 0.75,
    "decoder_energy": 0.3,
    "interconnect_delay": 0.125,
    "interconnect_energy": 0.4,
    "random_rate": 8.0,
    "random_energy": 0.5,
    "buffer_cycle": 3.0,
    "buffer_write_energy": 20.0,
    "buffer_read_energy": 10.0,
}


def small(**changes):
    """Four arrays of 16 keys; 6 candidates."""
    fields = {
        "capacity": 60,
        "key_bits": 8,
        "rows_per_array": 16,
        "groups": 3,
        "variant": "fr_prefix",
        "csp_size": 6,
        "batch_size": 5,
        "overlap": "serial",
    }
    return Design(**(fields | changes))


def clocked(period=2.0):
    return hardware.load_components(tcam="rtl_tcam").given(clock_period=period)


def latency(design, components, energy=True):
    return modelled_sample(design, components, energy=energy).modelled_latency_ns
