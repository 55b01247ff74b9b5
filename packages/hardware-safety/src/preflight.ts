/** Checks the robot before it moves: warnings for the log, and the findings of `sluice doctor`. */
import { checkDevicePath, type Gpio, isDevicePath, openGpio } from '@sluice/hardware'
import { errorText, type Finding } from '@sluice/sdk'
import { loadSerialPort } from './native.ts'
import { findGpioChip, isSimulated } from './robot-config.ts'
import type { RobotConfig } from './robot-toml.ts'

/** Returns the warnings and failures that the settings alone show. */
export function warningsOf(config: RobotConfig): readonly Finding[] {
  const { drive, safety, sensors } = config
  const warnings: (Finding | false)[] = [
    isSimulated(config) && warning('the robot is SIMULATED: no real robot moves', "set backend = 'serial' under [drive]"),
    safety.min_obstacle_distance < 0.1 &&
      warning('min_obstacle_distance is less than 0.1 m', 'raise it: most sensors see nothing that near'),
    safety.max_drive_duration > 60 &&
      warning('max_drive_duration is more than 60 s', 'lower it: only the watchdog ends a movement that hangs'),
    drive.max_speed > 1 &&
      warning('max_speed is more than 1 m/s', 'lower it: at that speed a robot needs more room to stop than most sensors see'),
    safety.blind_mode_speed_limit > 0 &&
      warning('the robot moves in directions that no sensor covers', 'set blind_mode_speed_limit = 0, or add sensors'),
  ]
  if (isSimulated(config)) return warnings.filter((found) => found !== false)
  const pins = pinsOf(config)
  const twice = pins.find((pin, index) => pins.indexOf(pin) !== index)
  return [
    ...warnings,
    twice !== undefined &&
      ({ status: 'fail', detail: `pin ${twice} is assigned to two parts`, fix: 'give each part a pin of its own' } as const),
    pins.length > 0 &&
      isDevicePath(sensors.gpio_chip, 'gpio') &&
      warning(
        `${sensors.gpio_chip} may be another chip after a system update, because chips are numbered at boot`,
        'set gpio_chip to the label of the chip, which gpiodetect shows',
      ),
    safety.estop_pin === undefined && warning('there is no emergency stop', 'wire one to a GPIO pin and set estop_pin'),
    safety.estop_pin !== undefined &&
      safety.estop_active === 'low' &&
      warning('a broken wire to the emergency stop is not noticed', "use a switch that opens when pressed, and estop_active = 'high'"),
    !sensors.ultrasonic_pins &&
      safety.blind_mode_speed_limit === 0 &&
      warning('the robot will not move, because it has no range sensor', 'set ultrasonic_pins under [sensors]'),
  ].filter((found) => found !== false)
}

/** Also checks that the parts exist. Opens neither the port nor a pin, because the daemon may be using them. */
export async function checkRobot(config: RobotConfig, open: () => Promise<Pick<Gpio, 'chips'>> = openGpio): Promise<readonly Finding[]> {
  const findings = [...warningsOf(config)]
  if (!isSimulated(config)) {
    const { serial_port } = config.drive
    findings.push(
      await attempt('connect the drive, or correct serial_port', async () => {
        await checkDevicePath(serial_port, 'serial')
        return `the drive is on ${serial_port}`
      }),
    )
    findings.push(
      await attempt('install the package serialport', async () => {
        await loadSerialPort()
        return 'serialport is installed'
      }),
    )
    if (pinsOf(config).length > 0)
      findings.push(
        await attempt('correct gpio_chip', async () => {
          const { gpio_chip } = config.sensors
          const chip = await findGpioChip(await open(), gpio_chip)
          if (chip === gpio_chip) await checkDevicePath(chip, 'gpio')
          return `the pins are on ${chip}`
        }),
      )
  }
  return findings.length > 0 ? findings : [{ status: 'ok', detail: 'the settings of the robot are valid' }]
}

const pinsOf = ({ safety, sensors }: RobotConfig): readonly number[] => [
  ...(safety.estop_pin === undefined ? [] : [safety.estop_pin]),
  ...safety.bump_sensor_pins,
  ...(sensors.ultrasonic_pins ?? []),
]

/** Returns an `ok` finding with the detail that `work` returns, or a `fail` finding with its error. */
async function attempt(fix: string, work: () => Promise<string>): Promise<Finding> {
  try {
    return { status: 'ok', detail: await work() }
  } catch (error) {
    return { status: 'fail', detail: errorText(error), fix }
  }
}

const warning = (detail: string, fix: string): Finding => ({ status: 'warn', detail, fix })
