from django.db import models


class SignInCount(models.Model):
    """How often signing in was tried without success: by a name, an address, or one from the other.

    Belongs to no tenant: nobody is known yet. The subject is a keyed digest, so that what people
    mistyped is not kept.
    """

    subject = models.CharField(primary_key=True, max_length=64)
    tries = models.PositiveIntegerField()
    until = models.DateTimeField()  # then it is forgotten

    class Meta:
        indexes = [models.Index(fields=["until"], name="sign_in_count_until")]

    def __str__(self) -> str:
        return f"{self.tries} tries"
