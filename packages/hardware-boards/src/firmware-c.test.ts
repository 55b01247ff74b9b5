/** The firmware in C, on emulated chips, through the line protocol as the daemon speaks it. */

import { systemClock } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { capabilitiesOf } from './protocol/answers.ts'
import { createLink, type Link } from './protocol/link.ts'
import { findBoardTools, type QemuBoard, type QemuBoardName, startQemuBoard } from './testing/qemu-board.ts'

const wanted = process.env.SLUICE_HARDWARE === '1'
const signal = new AbortController().signal

const BOARDS: readonly { name: QemuBoardName; gpio: number[]; says: string }[] = [
  { name: 'board_b', gpio: Array.from({ length: 18 }, (_, index) => index + 2), says: 'board_b' },
  // QEMU's chip is neither of the two the firmware knows by their numbers.
  { name: 'board_c', gpio: Array.from({ length: 12 }, (_, index) => index + 2), says: 'board_c' },
]

for (const { name, gpio, says } of BOARDS) {
  const tools = wanted ? await findBoardTools(name) : { missing: 'SLUICE_HARDWARE is not 1' }
  const title = 'missing' in tools ? `${name} (skipped: ${tools.missing})` : name

  describe.skipIf('missing' in tools)(title, () => {
    let board: QemuBoard
    let link: Link
    const heard: [string, unknown][] = []
    const ask = (command: string, args: object = {}) => link.request(command, { ...args }, { signal, repeatable: true })
    /** What it says to one line, before it answers the next. */
    const say = async (line: string | Uint8Array): Promise<string> => {
      let text = ''
      const stop = board.port.onData((bytes) => {
        text += Buffer.from(bytes).toString('latin1')
      })
      await board.port.write(typeof line === 'string' ? Buffer.from(`${line}\n`) : line)
      await board.port.write(Buffer.from('\n{"id":"after","cmd":"nothing"}\n'))
      const end = '{"id":"after","ok":false,"error":"Unknown command"}\n'
      while (!text.endsWith(end)) await new Promise((resolve) => setTimeout(resolve, 5))
      stop()
      return text.slice(0, -end.length)
    }

    beforeAll(async () => {
      if ('missing' in tools) return
      board = await startQemuBoard(name, tools)
      link = createLink({ port: board.port, name, clock: systemClock, onSignal: (event, value) => void heard.push([event, value]) })
      await link.hello(signal)
    }, 60_000)
    afterAll(async () => board?.stop())

    test('ping tells the firmware, its version and the board', async () => {
      expect(JSON.parse(String(await ask('ping')))).toEqual({ firmware: 'sluice', version: 1, board: says })
    })

    test('capabilities are the pins it really drives', async () => {
      expect(capabilitiesOf(name, await ask('capabilities'))).toEqual({ gpio, led: 13, board: says, firmware: 'sluice 1' })
    })

    test('every pin it names can be written and read; what is read is the pin, not what was written', async () => {
      for (const pin of gpio) {
        expect(await ask('gpio_write', { pin, value: 1 })).toBe('done')
        expect(['0', '1']).toContain(await ask('gpio_read', { pin }))
      }
    })

    test.each([
      ['gpio_read', {}, 'Invalid pin'],
      ['gpio_read', { pin: 0 }, 'Invalid pin'],
      ['gpio_read', { pin: 99 }, 'Invalid pin'],
      ['gpio_read', { pin: -2 }, 'Invalid pin'],
      ['gpio_read', { pin: 258 }, 'Invalid pin'],
      ['gpio_read', { pin: 2.5 }, 'Invalid pin'],
      ['gpio_read', { pin: '2' }, 'Invalid pin'],
      ['gpio_write', { pin: 2 }, 'Invalid value'],
      ['gpio_write', { pin: 2, value: 2 }, 'Invalid value'],
      ['gpio_write', { pin: 2, value: true }, 'Invalid value'],
      ['watch', { pin: 2, pull: 'sideways' }, 'Invalid pull'],
      ['reboot', {}, 'Unknown command'],
    ])('%s %j is refused', async (command, args, why) => {
      await expect(ask(command, args)).rejects.toMatchObject({ code: 'upstream', message: expect.stringContaining(why) })
    })

    test('a watched pin is not written, until it is let go', async () => {
      expect(await ask('watch', { pin: 4, pull: 'up' })).toBe('done')
      await expect(ask('gpio_write', { pin: 4, value: 1 })).rejects.toBeInstanceOf(AppError)
      expect(await ask('unwatch', { pin: 4 })).toBe('done')
      expect(await ask('gpio_write', { pin: 4, value: 1 })).toBe('done')
    })

    test('the id comes back as it was sent, and members nobody knows are skipped', async () => {
      expect(await say('{"x":[1,{"y":"}"},null],"id":"a-b.7","args":{"z":{},"pin":3},"cmd":"gpio_read"}')).toMatch(
        /^\{"id":"a-b\.7","ok":true,"result":"[01]"\}\n$/,
      )
    })

    test.each([
      '',
      'hello',
      '{',
      '{"cmd":"ping"}',
      '{"id":1,"cmd":"ping"}',
      '{"id":"1","cmd":"ping"',
      '{"id":"1","cmd":"ping"} x',
      '[{"id":"1"}]',
      `{"id":"${'1'.repeat(33)}","cmd":"ping"}`,
      '{"id":"a\\"b","cmd":"ping"}',
      `{"id":"1","cmd":"ping","x":"${'y'.repeat(300)}"}`,
      `{"id":"1","cmd":"ping","x":${'['.repeat(100)}`,
    ])('what is no request is not answered: %j', async (line) => {
      expect(await say(line)).toBe('')
    })

    test('it answers after whatever bytes', async () => {
      await fc.assert(
        fc.asyncProperty(fc.uint8Array({ maxLength: 600 }), async (bytes) => {
          await say(bytes)
          expect(await ask('gpio_read', { pin: 5 })).toMatch(/^[01]$/)
        }),
        { numRuns: 15 },
      )
    }, 30_000)

    test('it tells nothing unasked while nothing changes', () => {
      expect(heard).toEqual([])
    })
  })
}
