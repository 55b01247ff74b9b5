/** Message ids in headers such as `References` (RFC 5322, section 3.6.4). */

/** Returns the ids in a text: visible ASCII in angle brackets, which cannot start another header. */
export const messageIds = (text: string): string[] => text.match(/<[\x21-\x3b\x3d\x3f-\x7e]{1,250}>/g) ?? []
