"""The decision service: trained models behind HTTP, with a page to decide a case on."""
