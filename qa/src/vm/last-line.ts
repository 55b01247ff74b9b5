/** What went wrong, in one line: programs say it in their last. */
export const lastLine = (error: unknown): string => (error instanceof Error ? error.message : String(error)).trim().split('\n').at(-1) ?? ''
