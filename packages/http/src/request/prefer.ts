/** The header `Prefer` (RFC 7240). */

/** Tells whether the caller wants the work stored and an answer at once. */
export const prefersAsync = (headers: Pick<Headers, 'get'>): boolean =>
  headers
    .get('prefer')
    ?.split(',')
    .some((preference) => /^\s*respond-async\s*(?:;|$)/i.test(preference)) ?? false
