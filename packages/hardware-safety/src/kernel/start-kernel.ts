/** Starts the kernel on the configured robot. The safety process loads this module, and all it needs, once it knows its role. */
import { closeSync, openSync, writeSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import type { Clock } from '@sluice/sdk'
import { isSimulated, limitsOf } from '../robot-config.ts'
import { SimBody, type SimNote } from '../sim/sim-body.ts'
import type { Body, Report } from './body.ts'
import { openGpioSensors } from './gpio-sensors.ts'
import { Kernel, type SendMessage } from './kernel.ts'
import type { KernelInit } from './messages.ts'
import { SerialDrive } from './serial-drive.ts'

/** The clock of the whole machine, so that times of several processes can be compared. */
const machineClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => Number(process.hrtime.bigint()) / 1e6,
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      signal?.addEventListener('abort', end)
    }),
}

export const startKernel = (init: KernelInit, send: SendMessage): Promise<Kernel> =>
  Kernel.start({ limits: limitsOf(init.config), latched: init.latched }, machineClock, (report) => openBody(init, report), send)

/** Throws when a part of the robot is not available, and then holds none of them. */
async function openBody({ config, script }: KernelInit, report: Report): Promise<Body> {
  if (isSimulated(config)) {
    const onNote = script?.journal === undefined ? undefined : journalTo(script.journal)
    return new SimBody(config, machineClock, report, { onNote, estopAfterMs: script?.estopAfterMs })
  }
  const { serial_port, baud } = config.drive
  const drive = await SerialDrive.open(serial_port, baud, machineClock, report)
  try {
    const sensors = await openGpioSensors(config, machineClock, report)
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

/** Appends each note to the file as a line of JSON, and closes the file after the last one. */
function journalTo(file: string): (note: SimNote) => void {
  const journal = openSync(file, 'a', 0o600)
  return (note) => {
    writeSync(journal, `${JSON.stringify(note)}\n`)
    if (note.what === 'closed') closeSync(journal)
  }
}

/** Gives this process the highest priority where the system allows it. */
export function raisePriority(): void {
  try {
    setPriority(constants.priority.PRIORITY_HIGHEST)
  } catch {}
}
