/** How much of a stranger's text a table shows. */
export const NAME_CHARS_MAX = 40
export const TEXT_CHARS_MAX = 60
export const ERROR_CHARS_MAX = 80
