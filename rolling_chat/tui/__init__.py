"""The screen: a Textual app that draws what an agent turn tells, and knows no more of it."""
