"""Path converters; `<id:pk>` is registered when the app is ready."""

from uuid import UUID


class IdConverter:
    """A UUID in either case; anything else is no path of ours."""

    regex = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"

    def to_python(self, value: str) -> UUID:
        return UUID(value)

    def to_url(self, value: UUID) -> str:
        return str(value)
