"""Laws on an embedded processor: a control law or an estimator as C99 that needs nothing but a compiler."""
