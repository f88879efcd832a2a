"""The smallest Django REST framework service that inserts one row a request."""
