import { systemClock } from '@sluice/kit'
import { findSocat, startSerialLine } from '@sluice/qa/serial-line'
import { describe, expect, test } from 'vitest'
import type { BodyEvent } from '../core/robot-event.ts'
import { SerialDrive } from './serial-drive.ts'

const socat = await findSocat()
const why = 'missing' in socat ? `: skipped, ${socat.missing}` : ''

describe.skipIf('missing' in socat)(`on a real serial line${why}`, () => {
  test('commands arrive, and a cable that comes off is a fault', async () => {
    if ('missing' in socat) return
    const line = await startSerialLine(socat)
    let arrived = ''
    line.onData((bytes) => {
      arrived += Buffer.from(bytes).toString()
    })
    const gone = Promise.withResolvers<BodyEvent>()
    const motors = await SerialDrive.open(line.path, 115_200, systemClock, gone.resolve, { check: async () => undefined })
    motors.run({ x: 0.25, y: 0, turn: -0.5 }, 200)
    await motors.halt()
    await expect.poll(() => arrived).toBe('M 0.250 0.000 -0.500 200\n\nM 0 0 0 0\n')
    await line.unplug()
    expect(await gone.promise).toMatchObject({ kind: 'fault' })
    await motors.close()
  })
})
