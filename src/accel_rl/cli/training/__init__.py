"""Training agents from the command line: configuration, assembly, execution, folders, sweeps."""
