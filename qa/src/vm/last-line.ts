/** The last line of an error message, in which most programs name the cause. */
export const lastLine = (error: unknown): string => (error instanceof Error ? error.message : String(error)).trim().split('\n').at(-1) ?? ''
