"""The service itself, driven through the same doors its users take."""
