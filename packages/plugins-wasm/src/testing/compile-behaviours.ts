/** A plugin that does whatever its input says, good or bad. */
import { compilePlugin } from './compile.ts'

const INDEX = `
import { fromText, toText } from './text'
export { alloc } from './text'

@external("env", "sluice_http")
declare function request(at: usize, length: usize): u64

let calls = 0

function recurse(depth: i32): i32 { return recurse(depth + 1) + 1 }

export function run(at: usize, length: usize): u64 {
  const input = toText(at, length)
  calls++
  if (input == 'count') return fromText(calls.toString())
  if (input == 'loop') while (true) {}
  if (input == 'grow') while (true) { if (memory.grow(1) < 0) return fromText((memory.size() / 16).toString()) }
  if (input == 'trap') unreachable()
  if (input == 'throw') throw new Error('this is why')
  if (input == 'recurse') return recurse(0)
  if (input == 'outside') return (0xffffff00 << 32) | 1024
  if (input == 'long') return 1 << 30
  if (input == 'bytes') { store<u8>(at, 0xff); return (<u64>at << 32) | 1 }
  if (input == 'empty') return 0
  if (input.startsWith('http ')) {
    const bytes = String.UTF8.encode(input.substring(5))
    const answer = request(changetype<usize>(bytes), bytes.byteLength)
    return fromText(toText(<usize>(answer >> 32), <usize>(answer & 0xffffffff)))
  }
  return fromText(input)
}
`

/** Without the network it imports nothing of it: the whole request is left out. */
export const compileBehaviours = (hasNetwork: boolean) =>
  compilePlugin(
    hasNetwork ? INDEX : INDEX.replace(/@external[\s\S]*?u64\n/, '').replace(/ {2}if \(input\.startsWith[\s\S]*?\n {2}\}\n/, ''),
  )
