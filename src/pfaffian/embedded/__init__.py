"""Control laws and estimators for an embedded processor, written as C99 that needs nothing but a compiler."""
