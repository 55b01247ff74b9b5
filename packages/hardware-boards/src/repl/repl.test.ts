import { type TestClock, testClock } from '@sluice/testkit/clock'
import { describe, expect, test } from 'vitest'
import { OUTPUT_BYTES_MAX } from './limits.ts'
import { type Repl, withRepl } from './repl.ts'
import { drive } from './testing/drive.ts'
import { ReplBoard, type ReplBoardSettings } from './testing/repl-board.ts'

const arrange = (options: ReplBoardSettings = {}, clock: TestClock = testClock()) => {
  const board = new ReplBoard(options)
  const abort = new AbortController()
  const using = <Result>(work: (repl: Repl) => Promise<Result>, reset = false) =>
    drive(clock, withRepl(board.port, { name: 'board_a0', clock, signal: abort.signal, reset }, work))
  return { board, abort, clock, using, run: (code: string) => using((repl) => repl.run(code)) }
}

const long = `print('${'x'.repeat(1000)}')`

describe.each<NonNullable<ReplBoardSettings['rawPaste']>>(['yes', 'no', 'unknown'])('raw-paste mode: %s', (rawPaste) => {
  test('sends code unchanged, and separates output from traceback', async () => {
    const { board, using } = arrange({
      rawPaste,
      execute: (code) =>
        code === 'bad' ? { stdout: 'so far\r\n', stderr: 'Traceback\r\nNameError: bad\r\n' } : { stdout: `${code.length}\r\n` },
    })
    const { result } = await using(async (repl) => [await repl.run(long), await repl.run('bad'), await repl.run("print('ü')")])
    expect(board.codes).toEqual([long, 'bad', "print('ü')"])
    expect(result[0]).toEqual({ stdout: `${long.length}\n`, stderr: '', dropped: 0, isLate: false })
    expect(result[1]).toMatchObject({ stdout: 'so far\n', stderr: 'Traceback\nNameError: bad\n' })
    expect(board.mode).toBe('friendly')
  })
})

describe('withRepl', () => {
  test('copes with noise before prompts and with lost prompts', async () => {
    const { run } = arrange({ garbage: '\xfe>> {"event":', losesPrompts: 3, execute: () => ({ stdout: 'fine' }) })
    expect(await run('x')).toMatchObject({ result: { stdout: 'fine' } })
  })

  test('interrupts a running program and restarts it afterwards', async () => {
    const { board, run } = arrange({ program: true, execute: () => ({ stdout: 'fine' }) })
    expect(await run('x')).toMatchObject({ result: { stdout: 'fine' }, wasRestarted: true })
    expect(board).toMatchObject({ mode: 'running', softResets: 1 })
  })

  test('resets a board without a program only on request', async () => {
    const { board, run, using } = arrange()
    expect(await run('x')).toMatchObject({ wasRestarted: false })
    expect(board.softResets).toBe(0)
    await using((repl) => repl.run('x'), true)
    expect(board).toMatchObject({ mode: 'friendly', softResets: 1 })
  })

  test('interrupts a program again when it catches interrupts', async () => {
    const { run } = arrange({ program: true, catches: 5, execute: () => ({ stdout: 'fine' }) })
    expect(await run('x')).toMatchObject({ result: { stdout: 'fine' } })
  })

  test.each<[what: string, options: ReplBoardSettings, says: string]>([
    ['nothing answers', { instead: 'silence' }, 'does not answer'],
    ['an echo', { instead: 'echo' }, 'echoes what is sent'],
    ['noise', { instead: 'noise' }, 'does not answer as MicroPython does'],
  ])('explains why no REPL answers: %s', async (_, options, says) => {
    const { run, clock } = arrange(options)
    await expect(run('x')).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining(says) })
    expect(clock.monotonicMs()).toBeLessThan(15_000)
  })

  test('interrupts code after 30 s and returns its output', async () => {
    const { board, run, clock } = arrange({ execute: () => ({ stdout: 'started\r\n', hangs: true }) })
    const { result } = await run('while True: pass')
    expect(result).toMatchObject({ stdout: 'started\n', isLate: true, stderr: expect.stringContaining('KeyboardInterrupt') })
    expect(clock.monotonicMs()).toBeGreaterThanOrEqual(30_000)
    expect(clock.monotonicMs()).toBeLessThan(34_000)
    expect(board.mode).toBe('friendly')
  })

  test('reports in time that code cannot be interrupted', async () => {
    const { run, clock } = arrange({ execute: () => ({ hangs: true }), catches: 1000 })
    await expect(run('while True: pass')).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('reset button') })
    expect(clock.monotonicMs()).toBeLessThan(35_000)
  })

  test('interrupts the code on an abort and leaves the board at its prompt', async () => {
    const { board, run, abort, clock } = arrange({ execute: () => ({ hangs: true }) })
    void clock.sleep(2000).then(() => abort.abort())
    await expect(run('while True: pass')).rejects.toMatchObject({ code: 'aborted' })
    expect(board.mode).toBe('friendly')
    expect(clock.monotonicMs()).toBeLessThan(5000)
  })

  test('ends at once on an abort while code is being sent', async () => {
    const { run, abort, clock } = arrange({ stallsAfter: 40 })
    void clock.sleep(2000).then(() => abort.abort())
    await expect(run(long)).rejects.toMatchObject({ code: 'aborted' })
    expect(clock.monotonicMs()).toBeLessThan(4000)
  })

  test('reports in time that a board stopped accepting code', async () => {
    const { run, clock } = arrange({ stallsAfter: 40 })
    await expect(run(long)).rejects.toMatchObject({ code: 'upstream_timeout' })
    expect(clock.monotonicMs()).toBeLessThan(35_000)
  })

  test('reports in time that a board accepts no more bytes', async () => {
    const { run, clock } = arrange({ hangsAfter: 200 })
    await expect(run(long)).rejects.toMatchObject({ code: 'upstream_timeout', message: expect.stringContaining('does not accept') })
    expect(clock.monotonicMs()).toBeLessThan(35_000)
  })

  test('ends on an abort when the board accepts no bytes', async () => {
    const { run, abort, clock } = arrange({ hangsAfter: 0 })
    void clock.sleep(500).then(() => abort.abort())
    await expect(run(long)).rejects.toMatchObject({ code: 'aborted' })
    expect(clock.monotonicMs()).toBeLessThan(4000)
  })

  test('reports at once that the board was unplugged', async () => {
    const { board, run, clock } = arrange({ execute: () => ({ hangs: true }) })
    void clock.sleep(1000).then(() => board.unplug())
    await expect(run('while True: pass')).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('no longer connected'),
    })
    expect(clock.monotonicMs()).toBeLessThan(4000)
  })

  test('counts output over the limit and drops it', async () => {
    const { run } = arrange({ execute: () => ({ stdout: 'y'.repeat(OUTPUT_BYTES_MAX + 1234) }) })
    const { result } = await run('x')
    expect(result.stdout).toHaveLength(OUTPUT_BYTES_MAX)
    expect(result.dropped).toBe(1234)
  })

  test('does not send code over the limit', async () => {
    const { board, run } = arrange()
    await expect(run('#'.repeat(70_000))).rejects.toMatchObject({ code: 'too_large' })
    expect(board.codes).toEqual([])
  })

  test('throws the last line of a traceback from ask', async () => {
    const { using } = arrange({ execute: () => ({ stderr: 'Traceback\r\n  File\r\nOSError: [Errno 28] ENOSPC\r\n' }) })
    await expect(using((repl) => repl.ask('x'))).rejects.toMatchObject({
      code: 'upstream',
      message: 'board_a0 reports: OSError: [Errno 28] ENOSPC',
    })
  })

  test('removes control characters from the error of ask', async () => {
    const { using } = arrange({ execute: () => ({ stderr: 'Traceback\r\n\x1b]0;owned\x07\x1b[2JValueError\r\n' }) })
    await expect(using((repl) => repl.ask('x'))).rejects.toMatchObject({ message: 'board_a0 reports: ]0;owned  [2JValueError' })
  })
})
