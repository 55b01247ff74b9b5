/** Words of a stranger's, fit for a sentence on a terminal. */

const CHARS_MAX = 200

export const shown = (text: string): string => text.slice(0, CHARS_MAX).replace(/[^\x20-\x7e]/g, '?')
