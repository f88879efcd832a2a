"""What `manage.py up` starts and keeps alive: the embedded servers and the service itself."""
