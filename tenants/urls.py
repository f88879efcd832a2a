"""Sign-in and what belongs to a person, whatever the tenant."""

from django.urls import path
from django.views.generic import RedirectView

from tenants.views.profile import PasswordView, ProfileView
from tenants.views.signing import SignInView, SignOutView, TenantView

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="inbox"), name="home"),
    path("sign-in", SignInView.as_view(), name="sign-in"),
    path("sign-out", SignOutView.as_view(), name="sign-out"),
    path("tenant", TenantView.as_view(), name="tenant"),
    path("profile", ProfileView.as_view(), name="profile"),
    path("profile/password", PasswordView.as_view(), name="password"),
]
