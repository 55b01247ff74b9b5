/** Puts the robot of a configuration together: the simulated one, or the drive and sensors that are there. */
import { closeSync, openSync, writeSync } from 'node:fs'
import type { Clock } from '@sluice/sdk'
import { isSimulated } from '../robot-config.ts'
import { SimBody, type SimNote } from '../sim/sim-body.ts'
import type { Body, Hear } from './body.ts'
import { openGpioSensors } from './gpio-sensors.ts'
import type { KernelInit } from './messages.ts'
import { openSerialDrive } from './serial-drive.ts'

/** Throws where a part of it cannot be had; then nothing is held. */
export async function openBody({ config, script }: KernelInit, clock: Clock, hear: Hear): Promise<Body> {
  if (isSimulated(config)) {
    const journal = script?.journal === undefined ? undefined : openSync(script.journal, 'a', 0o600)
    const note = (what: SimNote) => {
      if (journal === undefined) return
      writeSync(journal, `${JSON.stringify(what)}\n`)
      if (what.what === 'closed') closeSync(journal)
    }
    return new SimBody({ config, clock, hear, note, estopAfterMs: script?.estopAfterMs })
  }
  const { serial_port: path, baud } = config.drive
  const drive = await openSerialDrive({ path, baud, clock, hear })
  try {
    const sensors = await openGpioSensors({ config, clock, hear })
    return {
      drive,
      poll: sensors.poll,
      async close() {
        sensors.close()
        await drive.close()
      },
    }
  } catch (error) {
    await drive.close()
    throw error
  }
}
