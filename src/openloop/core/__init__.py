"""THE NOUNS: frozen values that check themselves once, and know nothing about where rows live."""
