/** The firmware in C on emulated chips, tested through the line protocol of the daemon. */

import { systemClock } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { capabilitiesOf } from './protocol/answers.ts'
import { Link } from './protocol/link.ts'
import { findBoardTools, type QemuBoard, type QemuBoardName, startQemuBoard } from './testing/qemu-board.ts'

const wanted = process.env.SLUICE_HARDWARE === '1'
const signal = new AbortController().signal

const BOARDS: readonly { name: QemuBoardName; gpio: number[]; says: string }[] = [
  { name: 'board_b', gpio: Array.from({ length: 18 }, (_, index) => index + 2), says: 'board_b' },
  // The firmware does not know the id of QEMU's chip, so it names only the family.
  { name: 'board_c', gpio: Array.from({ length: 12 }, (_, index) => index + 2), says: 'board_c' },
]

for (const { name, gpio, says } of BOARDS) {
  const tools = wanted ? await findBoardTools(name) : { missing: 'SLUICE_HARDWARE is not 1' }
  const title = 'missing' in tools ? `${name} (skipped: ${tools.missing})` : name

  describe.skipIf('missing' in tools)(title, () => {
    let board: QemuBoard
    let link: Link
    const signals: [string, unknown][] = []
    const ask = (command: string, args: object = {}) => link.request(command, { ...args }, { signal, repeatable: true })
    /** Returns the output of the board for one line. */
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
      link = new Link(board.port, name, systemClock, { onSignal: (event, value) => void signals.push([event, value]) })
      await link.hello(signal)
    }, 60_000)
    afterAll(async () => board?.stop())

    test('answers ping with the firmware, its version and the board', async () => {
      expect(JSON.parse(String(await ask('ping')))).toEqual({ firmware: 'sluice', version: 1, board: says })
    })

    test('lists the pins that it drives', async () => {
      expect(capabilitiesOf(name, await ask('capabilities'))).toEqual({ gpio, led: 13, board: says, firmware: 'sluice 1' })
    })

    test('writes and reads every listed pin', async () => {
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
    ])('refuses %s %j', async (command, args, why) => {
      await expect(ask(command, args)).rejects.toMatchObject({ code: 'upstream', message: expect.stringContaining(why) })
    })

    test('refuses to write a watched pin until the watch ends', async () => {
      expect(await ask('watch', { pin: 4, pull: 'up' })).toBe('done')
      await expect(ask('gpio_write', { pin: 4, value: 1 })).rejects.toBeInstanceOf(AppError)
      expect(await ask('unwatch', { pin: 4 })).toBe('done')
      expect(await ask('gpio_write', { pin: 4, value: 1 })).toBe('done')
    })

    test('returns the id unchanged and skips unknown members', async () => {
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
    ])('does not answer %j, which is not a request', async (line) => {
      expect(await say(line)).toBe('')
    })

    test('still answers after arbitrary bytes', async () => {
      await fc.assert(
        fc.asyncProperty(fc.uint8Array({ maxLength: 600 }), async (bytes) => {
          await say(bytes)
          expect(await ask('gpio_read', { pin: 5 })).toMatch(/^[01]$/)
        }),
        { numRuns: 15 },
      )
    }, 30_000)

    test('sends no signal while no pin changes', () => {
      expect(signals).toEqual([])
    })
  })
}
