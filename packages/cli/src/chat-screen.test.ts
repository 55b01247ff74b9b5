import { PassThrough } from 'node:stream'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Screen } from './chat-screen.ts'
import type { Stdin } from './context.ts'

const CTRL_C = '\x03'
const UP = '\x1b[A'
const LEFT = '\x1b[D'

/** A screen, and the keys that a person presses. */
function arrange() {
  const output = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  const keys = new PassThrough()
  const screen = new Screen({ stdin: keys as unknown as Stdin, history: ['earlier words'], prompt: '> ' })
  onTestFinished(() => {
    screen.close()
    output.mockRestore()
  })
  return { screen, press: (text: string) => keys.write(text) }
}

test.each([
  ['typed', 'half a line'],
  ['recalled', UP],
  ['edited in the middle', `half a line${LEFT}${LEFT}${LEFT}`],
])('Ctrl-C drops a line that is %s', async (_, written) => {
  const { screen, press } = arrange()
  const stopped = screen.next()
  press(written + CTRL_C)
  expect(await stopped).toEqual({ type: 'stop' })
  press('another line\r')
  expect(await screen.next()).toEqual({ type: 'line', text: 'another line' })
})

test('Ctrl-C while the answer is written drops what was typed ahead, and stops the answer', async () => {
  const { screen, press } = arrange()
  const stopped = Promise.withResolvers<void>()
  press('typed ahead')
  const stop = vi.fn(stopped.resolve)
  const answer = screen.during(stopped.promise, stop)
  press(CTRL_C)
  await answer
  expect(stop).toHaveBeenCalledOnce()
  press('next\r')
  expect(await screen.next()).toEqual({ type: 'line', text: 'next' })
})
