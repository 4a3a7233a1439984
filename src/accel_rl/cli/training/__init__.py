"""Training of agents from the command line: configuration, assembly, execution, sweeps."""
