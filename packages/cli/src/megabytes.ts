/** Shows a number of bytes as megabytes with one decimal. */
export const megabytes = (bytes: number): string => (bytes / 1_000_000).toFixed(1)
