// A plugin is a function from text to text: this one writes each letter as the one 13 places further in the alphabet.

import { fromText, toText } from './text'

export { alloc } from './text'

function rotate(input: string): string {
  const codes = new Array<i32>(input.length)
  for (let index = 0; index < input.length; index++) {
    const code = input.charCodeAt(index)
    const first = code >= 97 ? 97 : 65
    const isLetter = code >= first && code < first + 26
    codes[index] = isLetter ? first + ((code - first + 13) % 26) : code
  }
  return String.fromCharCodes(codes)
}

export function run(at: usize, length: usize): u64 {
  return fromText(rotate(toText(at, length)))
}
