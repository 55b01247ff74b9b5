/** Numbers as the tools show them. */

/** `0x0f`. */
export const hexByte = (byte: number): string => `0x${byte.toString(16).padStart(2, '0')}`

/** `[0x0f, 0x10]`. */
export const hexList = (bytes: Uint8Array): string => `[${Array.from(bytes, hexByte).join(', ')}]`

/** `0b00000101`, eight lines. */
export const binaryMask = (mask: number): string => `0b${mask.toString(2).padStart(8, '0')}`
