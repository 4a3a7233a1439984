"""UPMEM emulator."""
