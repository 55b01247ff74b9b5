/** Formats numbers for tool results and errors. */

/** Formats a byte as `0x0f`. */
export const hexByte = (byte: number): string => `0x${byte.toString(16).padStart(2, '0')}`

/** Formats bytes as `[0x0f, 0x10]`. */
export const hexList = (bytes: Uint8Array): string => `[${Array.from(bytes, hexByte).join(', ')}]`

/** Formats the mask of eight lines as `0b00000101`. */
export const binaryMask = (mask: number): string => `0b${mask.toString(2).padStart(8, '0')}`
