import { testClock } from '@sluice/testkit/clock'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MAIN_BYTES_MAX } from './limits.ts'
import { readMain, writeMain } from './main-file.ts'
import { type Repl, withRepl } from './repl.ts'
import { drive } from './testing/drive.ts'
import { micropython } from './testing/micropython.ts'
import { type Executed, ReplBoard, type ReplBoardSettings } from './testing/repl-board.ts'

const python = await micropython()
const title = python ? 'main.py on MicroPython itself' : 'main.py on MicroPython itself (skipped: its WebAssembly package is not installed)'

describe.skipIf(!python)(title, () => {
  const execute = (code: string): Executed => python?.execute(code) ?? {}
  const using = <Result>(work: (repl: Repl) => Promise<Result>, options: ReplBoardSettings = {}) => {
    const clock = testClock()
    const board = new ReplBoard({ execute, ...options })
    const result = drive(clock, withRepl(board.port, { name: 'board_a0', clock, signal: new AbortController().signal }, work))
    return result.then(({ result: value }) => value)
  }
  const forget = () => execute("import os\nfor n in os.listdir():\n    if n.startswith('main'):\n        os.remove(n)")

  test('reading returns undefined without a program', async () => {
    forget()
    expect(await using(readMain)).toBeUndefined()
  })

  test('reading returns the program that was written', async () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 3000 })
    await fc.assert(
      fc.asyncProperty(text, fc.constantFrom('yes' as const, 'no' as const), async (code, rawPaste) => {
        const program = code.toWellFormed()
        const { bytes } = await using((repl) => writeMain(repl, program), { rawPaste })
        expect(bytes).toBe(Buffer.byteLength(program))
        expect(await using(readMain, { rawPaste })).toBe(program)
      }),
      { numRuns: 12 },
    )
  })

  test('writing leaves no other file', async () => {
    await using((repl) => writeMain(repl, 'print(1)'))
    expect(execute("import os\nprint([n for n in os.listdir() if 'main' in n])").stdout?.trim()).toBe("['main.py']")
  })

  test.each([
    ['is damaged', (code: string) => code.includes('hexdigest') || code.includes('h.digest'), "print('0' * 64)"],
    ['cannot be renamed', (code: string) => code.includes('os.rename'), 'raise OSError(5)'],
    ['finds no room', (code: string) => code.includes('a2b_base64('), 'raise OSError(28)'],
  ])('a new program that %s leaves the old one in place', async (_, fails, instead) => {
    await using((repl) => writeMain(repl, 'old = 1'))
    const faulty = (code: string): Executed => python?.execute(fails(code) ? instead : code) ?? {}
    await expect(using((repl) => writeMain(repl, 'new = 2'), { execute: faulty })).rejects.toMatchObject({ code: 'upstream' })
    expect(await using(readMain)).toBe('old = 1')
    expect(execute("import os\nprint('main.py.new' in os.listdir())").stdout?.trim()).toBe('False')
  })

  test('the new program is kept when renaming fails after the old one is gone', async () => {
    await using((repl) => writeMain(repl, 'old = 1'))
    const faulty = (code: string): Executed =>
      python?.execute(code.includes('os.rename') ? "import os\nos.remove('main.py')\nraise OSError(5)" : code) ?? {}
    await expect(using((repl) => writeMain(repl, 'new = 2'), { execute: faulty })).rejects.toMatchObject({ code: 'upstream' })
    expect(execute("print(open('main.py.new').read())").stdout?.trim()).toBe('new = 2')
    forget()
  })

  test('a program over the limit is neither written nor read', async () => {
    forget()
    await expect(using((repl) => writeMain(repl, '#'.repeat(MAIN_BYTES_MAX + 1)))).rejects.toMatchObject({ code: 'too_large' })
    expect(await using(readMain)).toBeUndefined()
    execute(`f = open('main.py', 'w')\nf.write('#' * ${MAIN_BYTES_MAX + 1})\nf.close()`)
    await expect(using(readMain)).rejects.toMatchObject({ code: 'too_large' })
    forget()
  })

  test('the REPL of MicroPython accepts and answers the bytes that are sent', async () => {
    const { memoryPort } = await import('../transports/memory-port.ts')
    const { near, far } = memoryPort()
    // The interpreter would block in raw-paste mode, because a single thread cannot feed it meanwhile.
    far.onData((bytes) => {
      const asks = Buffer.from(bytes).toString('latin1') === '\x05A\x01'
      void far.write(asks ? Buffer.from('R\x00', 'latin1') : (python?.feed(bytes) ?? Buffer.alloc(0)))
    })
    const clock = testClock()
    const work = withRepl(near, { name: 'board_a0', clock, signal: new AbortController().signal }, async (repl) => [
      await repl.run('print(6 * 7)'),
      await repl.run('def f():\n    return 1 / 0\n\nf()'),
      await repl.run("print('ü' * 300)"),
      await repl.run('if True print'),
    ])
    const { result } = await drive(clock, work)
    expect(result[0]).toEqual({ stdout: '42\n', stderr: '', dropped: 0, isLate: false })
    expect(result[1]).toMatchObject({ stdout: '', stderr: expect.stringContaining('ZeroDivisionError: divide by zero') })
    expect(result[2]).toMatchObject({ stdout: `${'ü'.repeat(300)}\n` })
    expect(result[3]).toMatchObject({ stderr: expect.stringContaining('SyntaxError') })
  })
})

test.each(['', 'x', '12\nzz', '5\n00'])('reading refuses the answer %j', async (stdout) => {
  const clock = testClock()
  const { port } = new ReplBoard({ execute: () => ({ stdout }) })
  const work = withRepl(port, { name: 'board_a0', clock, signal: new AbortController().signal }, readMain)
  await expect(drive(clock, work)).rejects.toMatchObject({ code: 'upstream' })
})

test('writing to a board that hangs ends in time', async () => {
  const clock = testClock()
  const { port } = new ReplBoard({ execute: () => ({ hangs: true }) })
  const work = withRepl(port, { name: 'board_a0', clock, signal: new AbortController().signal }, (repl) => writeMain(repl, 'x'))
  await expect(drive(clock, work)).rejects.toMatchObject({ code: 'upstream_timeout', message: 'board_a0 did not answer within 10 s' })
  expect(clock.monotonicMs()).toBeLessThan(30_000)
})
