/** Makes a thing when it is first needed, and keeps it: a format of Intl takes milliseconds to make, and most pages need few. */
export function kept<Thing>(make: () => Thing): () => Thing {
  let thing: Thing | undefined
  return () => (thing ??= make())
}
