import { effort } from '@sluice/testkit/random'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  ALLOC,
  type Bytes,
  body,
  custom,
  ECHO,
  exportOf,
  HEADER,
  importOf,
  type ModuleParts,
  moduleOf,
  repeatedBody,
} from '../testing/wasm-text.ts'
import { callInstance, compileModule } from './call-instance.ts'
import { encodeI64, encodeSection, encodeU32, joined } from './encode.ts'
import { ModuleError } from './module-error.ts'
import { prepareModule } from './prepare-module.ts'

const LIMITS = { memoryMb: 1, fuel: 10_000, imports: ['abort'] }
const CALLS = { inputBytesMax: 1024, outputBytesMax: 1024 }
const run = (module: Uint8Array, { input = 'in', fuel = LIMITS.fuel } = {}) =>
  callInstance(compileModule(module, { ...LIMITS, fuel }), input, CALLS, undefined)
const withRun = (...code: number[]) => moduleOf({ bodies: [ALLOC, body(...code)] })
const RESULT = [0x42, 0]

test('prepareModule keeps the behaviour of a module', () => {
  expect(run(moduleOf())).toBe('in')
  expect(run(moduleOf({ imports: [importOf('env', 'abort')] }))).toBe('in')
})

test('prepareModule removes custom sections', () => {
  const prepared = prepareModule(joined([moduleOf(), custom('name', Buffer.from('find me'))]), LIMITS)
  expect(Buffer.from(prepared.bytes).includes('find me')).toBe(false)
})

describe('fuel', () => {
  test('a function pays at its entry, so endless recursion ends', () => {
    expect(() => run(withRun(0x20, 0, 0x20, 1, 0x10, 1), { fuel: 500 })).toThrow('used up its fuel')
  })

  test('a tail call pays', () => {
    expect(() => run(withRun(0x20, 0, 0x20, 1, 0x12, 1))).toThrow('used up its fuel')
  })

  test.each([
    ['br', [0x03, 0x40, 0x0c, 0, 0x0b]],
    ['br_if', [0x03, 0x40, 0x41, 1, 0x0d, 0, 0x0b]],
    ['br_table', [0x03, 0x40, 0x41, 0, 0x0e, 0, 0, 0x0b]],
    ['a loop within a loop', [0x03, 0x40, 0x03, 0x40, 0x0c, 1, 0x0b, 0x0b]],
    ['a loop within blocks', [0x02, 0x40, 0x03, 0x40, 0x02, 0x40, 0x0c, 1, 0x0b, 0x0b, 0x0b]],
    ['a loop after a loop that ends', [0x03, 0x40, 0x0b, 0x03, 0x40, 0x0c, 0, 0x0b]],
    ['a loop in the else branch of an if', [0x41, 0, 0x04, 0x40, 0x05, 0x03, 0x40, 0x0c, 0, 0x0b, 0x0b]],
    ['a loop that takes a value', [0x41, 0, 0x03, 0x03, 0x0c, 0, 0x0b]],
  ])('a loop pays for each iteration: %s', (_, code) => {
    const types = [
      [0x60, 1, 0x7f, 1, 0x7f],
      [0x60, 2, 0x7f, 0x7f, 1, 0x7e],
      [0x60, 0, 0],
      [0x60, 1, 0x7f, 0],
    ]
    expect(() => run(moduleOf({ types, bodies: [ALLOC, body(...code, ...RESULT)] }))).toThrow('used up its fuel')
  })

  test('the start function pays', () => {
    const start = encodeSection(8, Uint8Array.of(2))
    const functions = [[0], [1], [2]]
    const module = moduleOf({ functions, bodies: [ALLOC, ECHO, body(0x03, 0x40, 0x0c, 0, 0x0b)], afterExports: [start] })
    // The fuel counter is not readable before the start function ends, so the error only names the trap.
    expect(() => run(module)).toThrow('failed: unreachable')
  })

  test('a bounded loop costs its own instructions', () => {
    // Local 0 counts down from 100.
    const code = [0x41, ...encodeI64(100), 0x21, 0, 0x03, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b, ...RESULT]
    expect(run(withRun(...code), { fuel: 900 })).toBe('')
    expect(() => run(withRun(...code), { fuel: 600 })).toThrow('used up its fuel')
  })

  test.each([
    ['written', [0x42, ...encodeI64(1_000_000_000), 0x24, 0]],
    ['read', [0x23, 0, 0x1a]],
  ])('the plugin cannot access the fuel counter: %s', (_, code) => {
    expect(() => run(withRun(...code, ...RESULT))).toThrow('uses a global it does not have')
  })

  test('refuses an export with the name of the fuel counter', () => {
    expect(() => run(moduleOf({ exports: [exportOf('sluice_fuel', 0, 0)] }))).toThrow("exports 'sluice_fuel'")
  })
})

describe('limits', () => {
  test.each<[string, Bytes]>([
    ['no maximum', [0, 1]],
    ['a much higher maximum', [1, 1, 0x80, 0x80, 0x04]],
  ])('bounds memory for a module with %s', (_, memory) => {
    // `run` returns 1 byte when memory.grow(200) fails, and no bytes when it succeeds.
    const grows = body(0x41, ...encodeI64(200), 0x40, 0, 0x41, 31, 0x76, 0xad)
    const module = moduleOf({ memories: [memory], bodies: [ALLOC, grows] })
    expect(run(module)).toBe('i')
    expect(callInstance(compileModule(module, { ...LIMITS, memoryMb: 16 }), 'in', CALLS, undefined)).toBe('')
  })

  test.each<[string, ModuleParts, RegExp]>([
    ['a memory that starts too large', { memories: [[0, 17]] }, /more memory than the limit allows/],
    ['a missing memory', { memories: [] }, /does not have one memory/],
    [
      'two memories',
      {
        memories: [
          [0, 1],
          [0, 1],
        ],
      },
      /does not have one memory/,
    ],
    ['a shared memory', { memories: [[3, 1, 2]] }, /memory of an unsupported kind/],
    ['a memory of 64 bits', { memories: [[4, 1]] }, /memory of an unsupported kind/],
    ['a table that starts too large', { tables: [[0x70, 0, ...encodeU32(100_001)]] }, /table elements/],
    ['too many tables', { tables: Array.from({ length: 17 }, () => [0x70, 0, 1]) }, /more than 16 tables/],
    ['a table of typed references', { tables: [[0x64, 0, 1]] }, /typed references/],
    [
      'an import from another namespace',
      { imports: [importOf('wasi_snapshot_preview1', 'fd_write')] },
      /imports 'wasi_snapshot_preview1.fd_write'/,
    ],
    ['an import that is not available', { imports: [importOf('env', 'sluice_http')] }, /imports 'env.sluice_http'/],
    ['an import of a memory', { imports: [importOf('env', 'abort', [2, 0, 1])] }, /imports 'env.abort'/],
    ['an import of a global', { imports: [importOf('env', 'abort', [3, 0x7f, 0])] }, /imports 'env.abort'/],
    ['an import with unprintable characters in its name', { imports: [importOf('env', '\u202e\n')] }, /imports 'env.\?\?'/],
    [
      'an export with a terminal escape in its name',
      {
        exports: [
          ...['memory', 'alloc', 'run'].map((name, index) => exportOf(name, index === 0 ? 2 : 0, Math.max(0, index - 1))),
          ...['', ''].map(() => exportOf('\u001b[2J\u202e', 0, 0)),
        ],
      },
      /Duplicate export name '\?\[2J\?'/,
    ],
    ['no exports', { exports: [] }, /does not export the memory 'memory'/],
    ['an export of another kind', { exports: [exportOf('memory', 0, 0)] }, /does not export the memory 'memory'/],
    ['no export run', { exports: [exportOf('memory', 2, 0), exportOf('alloc', 0, 0)] }, /does not export the function 'run'/],
    ['too many types', { types: Array.from({ length: 5001 }, () => [0x60, 0, 0]) }, /more than 5000 types/],
    ['a recursive type group', { types: [[0x4e, 2, 0x60, 1, 0x7f, 1, 0x7f, 0x60, 2, 0x7f, 0x7f, 1, 0x7e]] }, /an unsupported type/],
    ['an unknown section', { before: [encodeSection(13, Uint8Array.of(0))] }, /an unsupported section of kind 13/],
    ['sections in the wrong order', { after: [encodeSection(5, Uint8Array.of(0))] }, /wrong order/],
    ['a section twice', { after: [encodeSection(10, Uint8Array.of(0))] }, /wrong order/],
    ['fewer bodies than functions', { bodies: [ALLOC] }, /is not valid/],
    ['code after the end of a body', { bodies: [ALLOC, body(0x42, 0, 0x0b)] }, /code behind the end/],
    ['a body without an end', { bodies: [ALLOC, joined([[3], [0, 0x42, 0]])] }, /is cut short/],
    ['too many loops', { bodies: [ALLOC, repeatedBody([3, 0x40, 0x0b], 100_000)] }, /more than 100000 functions/],
    ['too deeply nested blocks', { bodies: [ALLOC, repeatedBody([2, 0x40], 10_001)] }, /more than 10000 nested blocks/],
    ['too many exports', { exports: Array.from({ length: 10_001 }, (_, index) => exportOf(`e${index}`, 0, 0)) }, /more than 10000 exports/],
    ['vectors', { bodies: [ALLOC, body(0xfd, 0x0c)] }, /uses the unsupported instruction 0xfd/],
    ['threads', { bodies: [ALLOC, body(0xfe, 0x00)] }, /uses the unsupported instruction 0xfe/],
    ['exceptions', { bodies: [ALLOC, body(0x06, 0x40)] }, /uses the unsupported instruction 0x6/],
    ['garbage collection', { bodies: [ALLOC, body(0xfb, 0x00)] }, /uses the unsupported instruction 0xfb/],
    ['an unknown operation', { bodies: [ALLOC, body(0xfc, 99)] }, /uses the unsupported instruction 0xfc 99/],
    ['typed references', { bodies: [ALLOC, body(0x02, 0x64, 0x00, 0x0b)] }, /typed references/],
    ['another memory in an access', { bodies: [ALLOC, body(0x20, 0, 0x28, 0x42, 1, 0)] }, /more than one memory/],
  ])('refuses %s', (_, parts, message) => {
    expect(() => run(moduleOf(parts))).toThrow(message)
  })
})

describe('the cost of compiling a function', () => {
  const bytes = (code: Bytes, times: number) => joined(Array.from({ length: times }, () => code))
  const functionOf = (locals: number, ...parts: readonly Bytes[]) => {
    const whole = joined([[1], encodeU32(locals), [0x7f], ...parts, RESULT, [0x0b]])
    return joined([encodeU32(whole.length), whole])
  }
  const blocks = (depth: number) => joined([bytes([0x02, 0x40], depth), bytes([0x0b], depth)])
  const onStack = (code: Bytes, count: number, inner: Bytes) => joined([bytes(code, count), inner, bytes([0x1a], count)])
  const jumps = (depth: number, jump: Bytes) => joined([bytes([0x02, 0x40], depth), jump, bytes([0x0b], depth)])
  const table = (depth: number) =>
    joined([[0x41, 0, 0x0e], encodeU32(depth - 1), ...Array.from({ length: depth }, (_, label) => encodeU32(label))])
  const many = /too many values for its branches/

  test.each<[string, Uint8Array, RegExp]>([
    ['locals at blocks', functionOf(40_000, blocks(1000)), many],
    ['locals at branches', functionOf(40_000, jumps(1, bytes([0x41, 0, 0x0d, 0], 1000))), many],
    ['locals at a table of branches', functionOf(15_000, jumps(1000, table(1000))), many],
    ['values on the stack', functionOf(0, onStack([0x41, 0], 40_000, blocks(1000))), many],
    ['results of calls', functionOf(0, onStack([0x41, 0, 0x10, 0], 40_000, blocks(1000))), many],
    ['results of blocks', functionOf(0, onStack([0x02, 0x7f, 0x41, 0, 0x0b], 10_000, [])), many],
    ['very long code', functionOf(0, bytes([0x01], 1_048_576)), /a function of more than 1048576 bytes/],
  ])('is bounded for %s', (_, run, message) => {
    expect(() => prepareModule(moduleOf({ bodies: [ALLOC, run] }), LIMITS)).toThrow(message)
  })

  test.each<[string, Uint8Array]>([
    ['values that were dropped', functionOf(0, bytes([0x41, 0, 0x1a], 40_000), blocks(1000))],
    ['calls whose results were dropped', functionOf(0, bytes([0x41, 0, 0x10, 0, 0x1a], 40_000), blocks(1000))],
    ['values that end with their block', functionOf(0, [0x02, 0x40], bytes([0x41, 0], 40_000), [0x0c, 0, 0x0b], blocks(1000))],
    ['large code without branches', functionOf(1000, bytes([0x01], 1_000_000))],
  ])('accepts %s', (_, code) => {
    expect(run(moduleOf({ bodies: [ALLOC, code] }), { fuel: 10_000_000 })).toBe('')
  })
})

test.each([
  ['an empty file', []],
  ['a text', [...Buffer.from('(module)')]],
  ['another version', [0, 0x61, 0x73, 0x6d, 2, 0, 0, 0]],
  ['a component', [0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0]],
  ['only a header', HEADER],
  ['a section longer than the file', [...HEADER, 1, 0xff, 0xff, 0xff, 0xff, 0x0f]],
  ['a size without an end', [...HEADER, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]],
])('refuses a file that is not a module: %s', (_, bytes) => {
  expect(() => run(Uint8Array.from(bytes))).toThrow(ModuleError)
})

test('a module with random changes is refused or runs', () => {
  const whole = moduleOf({ imports: [importOf('env', 'abort')], tables: [[0x70, 0, 1]] })
  const flips = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(flips, (changes) => {
      const bytes = Uint8Array.from(whole)
      for (const [at, byte] of changes) bytes[at] = byte
      try {
        expect(typeof run(bytes)).toBe('string')
      } catch (error) {
        expect(error).toBeInstanceOf(ModuleError)
      }
    }),
    { numRuns: effort(2000) },
  )
})
