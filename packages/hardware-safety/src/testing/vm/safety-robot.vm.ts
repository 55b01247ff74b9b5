/** A robot on real drivers: a motor controller on USB, an emergency stop and an ultrasonic sensor on GPIO lines. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { createGpioChip, type GpioChip } from '@sluice/qa/vm/devices/gpio-chip'
import { openTerminal } from '@sluice/qa/vm/devices/terminal'
import { createUsbBoard, usbBoardModules } from '@sluice/qa/vm/devices/usb-board'
import { liveHost } from '@sluice/qa/vm/live-host'
import { type VmTestContext, vmCase } from '@sluice/qa/vm/vm-case'
import { startCompanion } from '@sluice/runtime'
import * as v from 'valibot'
import type { MoveEnd } from '../../core/robot-event.ts'
import type { View } from '../../kernel/messages.ts'
import { Robot } from '../../robot.ts'
import { robotToml } from '../../robot-toml.ts'

const ESTOP = 4
const ECHO = 24
const TRIES_MAX = 20
/** The simulated echoes take as long as the calls that play them, which amounts to some tenths of a metre. */
const NEAR = { min_obstacle_distance: 0.02, slow_zone_multiplier: 1, sensor_timeout_secs: 2 }
const HALT = 'M 0 0 0 0'
const AHEAD = { velocity: { x: 0.2, y: 0, turn: 0 }, amount: 50, forMs: null }
const { signal: never } = new AbortController()

/** Opens a robot whose motor controller is played by the test. */
async function robotOnDrivers(
  { after }: VmTestContext,
  { sensors = {}, safety = {} }: { readonly sensors?: object; readonly safety?: object },
) {
  const chip = await createGpioChip({ label: 'pinctrl-robot', lines: 32 })
  const board = await createUsbBoard({ vendor: '2341', product: '0043', serialNumber: 'MOTORS' })
  const port = await board.plug()
  after(() => board.unplug().catch(() => undefined))
  let written = ''
  const motors = await openTerminal(board.boardEnd, (bytes) => {
    written += bytes.toString()
  })
  after(() => motors.close())
  const config = v.parse(robotToml, {
    drive: { backend: 'serial', serial_port: port },
    sensors: { gpio_chip: chip.path, ...sensors },
    safety: { estop_pin: ESTOP, ...safety },
  })
  const robot = new Robot(liveHost({ companion: startCompanion }), config)
  after(() => robot.close())
  // The pulled-up pin is not held down yet, as with a broken wire.
  assert.equal((await robot.look()).isEstopPressed, true)
  await chip.drive(ESTOP, 0)
  assert.deepEqual(pick(await robot.reset()), { isEstopPressed: false, latched: null })
  const lines = () => written.split('\n').filter(Boolean)
  const isRunning = () => lines().some((line) => line.startsWith('M 0.200'))
  /**
   * Resolves once the motors run. Tries again, because so slow a machine may miss the time in which the sensors have to
   * answer.
   */
  const drive = async (turn = never): Promise<{ readonly moved: Promise<MoveEnd> }> => {
    for (let tries = 0; ; tries++) {
      const moved = robot.move(AHEAD, turn)
      await Promise.race([moved, eventually(isRunning)])
      if (isRunning() || tries === TRIES_MAX) return { moved }
    }
  }
  /** Resolves when the last command to the motors is, and stays, the halt. */
  const halted = async (): Promise<void> => {
    await eventually(() => lines().at(-1) === HALT)
    await sleep(300)
    assert.equal(lines().at(-1), HALT)
  }
  return { chip, board, robot, drive, halted }
}

const pick = ({ isEstopPressed, latched }: View) => ({ isEstopPressed, latched })

async function eventually(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(5)
}

/** Plays the echoes of a near obstacle until the returned function is called. */
function playEchoes(chip: GpioChip): () => Promise<void> {
  let isThere = true
  const playing = (async () => {
    while (isThere) {
      await chip.drive(ECHO, 1)
      await chip.drive(ECHO, 0)
      await sleep(5)
    }
  })()
  return async () => {
    isThere = false
    await playing
  }
}

export default vmCase({
  modules: ['gpio-sim', ...usbBoardModules(4)],
  udev: true,
  tests: {
    'the pin of the emergency stop halts the motors until it is released and reset': async (context) => {
      const { chip, robot, drive, halted } = await robotOnDrivers(context, { safety: { blind_mode_speed_limit: 0.2 } })
      const { moved } = await drive()
      await chip.drive(ESTOP, 1)
      assert.equal((await moved).reason, 'estop')
      await halted()
      assert.equal((await robot.reset()).isEstopPressed, true)
      await chip.drive(ESTOP, 0)
      assert.equal((await robot.move(AHEAD, never)).reason, 'refused')
      assert.deepEqual(pick(await robot.reset()), { isEstopPressed: false, latched: null })
      const again = robot.move({ ...AHEAD, amount: 0.05 }, never)
      assert.equal((await again).reason, 'done')
    },

    'an ultrasonic sensor that falls silent halts the motors': async (context) => {
      const { chip, robot, drive, halted } = await robotOnDrivers(context, {
        sensors: { ultrasonic_pins: [23, ECHO] },
        safety: NEAR,
      })
      assert.match((await robot.move(AHEAD, never)).why, /no fresh reading of ultrasonic/)
      const fallSilent = playEchoes(chip)
      const { moved } = await drive()
      await fallSilent()
      const { reason, why } = await moved
      assert.equal(reason, 'sensors', why)
      await halted()
    },

    'the motors halt when the turn that requested the movement is cancelled': async (context) => {
      const { drive, halted } = await robotOnDrivers(context, { safety: { blind_mode_speed_limit: 0.2 } })
      const turn = new AbortController()
      const { moved } = await drive(turn.signal)
      turn.abort()
      assert.equal((await moved).reason, 'stopped')
      await halted()
    },

    'a drive that is unplugged ends the movement and is found when plugged in again': async (context) => {
      const { board, drive, robot } = await robotOnDrivers(context, { safety: { blind_mode_speed_limit: 0.2 } })
      const { moved } = await drive()
      await board.unplug()
      const { reason, why } = await moved
      assert.equal(reason, 'fault')
      assert.match(why, /the drive on \/dev\/ttyACM0/)
      await assert.rejects(robot.look(), { message: /There is no \/dev\/ttyACM0|has ended/ })
      await board.plug()
      assert.equal((await robot.look()).fault, null)
    },
  },
})
