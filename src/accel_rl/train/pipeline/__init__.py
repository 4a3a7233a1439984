"""Executors on the host: acting, replay and learning in threads, on devices of their own."""
