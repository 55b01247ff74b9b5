/** The assembled program of `pattern.s` and the pattern that it writes into RAM. */
export const PATTERN_PROGRAM = Buffer.from(
  `000001204100000869000008690000086900000869000008690000086900
000869000008690000086900000869000008690000086900000869000008
690000084ff0005009a191e83c0080e83c00002101fb01f200eb81031a62
01311029f7d1002101310161fce7fee700bf4c4956452052414d20504154
5445524e`.replaceAll('\n', ''),
  'hex',
)
export const PATTERN_ENTRY = 0x08000040

export const RAM_START = 0x20000000
export const COUNTER = RAM_START + 0x10
/** The text at `RAM_START`. */
export const PATTERN_TEXT = 'LIVE RAM PATTERN'
export const SQUARES = RAM_START + 0x20
export const SQUARES_BYTES = Buffer.concat(
  Array.from({ length: 16 }, (_, index) => {
    const word = Buffer.alloc(4)
    word.writeUInt32LE(index * index)
    return word
  }),
)
