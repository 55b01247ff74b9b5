/** What somebody should know before this robot moves: for `sluice doctor` and the log. */
import { checkDevicePath, isDevicePath } from '@sluice/hardware'
import { errorText, type Finding } from '@sluice/sdk'
import { loadSerialPort } from './native.ts'
import { isSimulated } from './robot-config.ts'
import type { RobotConfig } from './robot-toml.ts'

/** What the settings themselves say. */
export function warningsOf(config: RobotConfig): readonly Finding[] {
  const { drive, safety, sensors } = config
  const warnings: (Finding | false)[] = [
    isSimulated(config) && warning('the robot is SIMULATED: no real robot moves', "set backend = 'serial' under [drive]"),
    safety.min_obstacle_distance < 0.1 && warning('min_obstacle_distance is less than 0.1 m', 'most sensors see nothing so near: raise it'),
    safety.max_drive_duration > 60 &&
      warning('max_drive_duration is more than 60 s', 'lower it: the watchdog is what ends a movement that hangs'),
    drive.max_speed > 1 && warning('max_speed is more than 1 m/s', 'at that speed a robot needs more room to stop than most sensors see'),
    safety.blind_mode_speed_limit > 0 && warning('the robot moves where no sensor looks', 'set blind_mode_speed_limit = 0, or add sensors'),
  ]
  if (isSimulated(config)) return warnings.filter((found) => found !== false)
  const pins = pinsOf(config)
  const twice = pins.find((pin, index) => pins.indexOf(pin) !== index)
  return [
    ...warnings,
    twice !== undefined &&
      ({ status: 'fail', detail: `pin ${twice} is named for two parts`, fix: 'give each part a pin of its own' } as const),
    pins.length > 0 &&
      isDevicePath(sensors.gpio_chip, 'gpio') &&
      warning(
        `${sensors.gpio_chip} is whatever chip this start of the machine counted so: its pins may be others after an update`,
        'name the chip by its label as gpio_chip: gpiodetect shows it',
      ),
    safety.estop_pin === undefined && warning('there is no emergency stop', 'wire one to a GPIO pin and name it as estop_pin'),
    safety.estop_pin !== undefined &&
      safety.estop_active === 'low' &&
      warning('a broken wire to the emergency stop goes unnoticed', "use a switch that opens when pressed, and estop_active = 'high'"),
    !sensors.ultrasonic_pins &&
      safety.blind_mode_speed_limit === 0 &&
      warning('the robot will not move: no sensor looks anywhere', 'name the ultrasonic_pins under [sensors]'),
  ].filter((found) => found !== false)
}

/** The same, and whether its parts are there; nothing is opened: the daemon may be using them. */
export async function checkRobot(config: RobotConfig): Promise<readonly Finding[]> {
  const findings = [...warningsOf(config)]
  if (!isSimulated(config)) {
    const { serial_port } = config.drive
    findings.push(
      await attempt(`the drive is on ${serial_port}`, 'connect it, or correct serial_port', () => checkDevicePath(serial_port, 'serial')),
    )
    findings.push(await attempt('serialport is installed', 'install the package serialport', loadSerialPort))
    const { gpio_chip } = config.sensors
    if (pinsOf(config).length > 0 && isDevicePath(gpio_chip, 'gpio'))
      findings.push(await attempt(`the pins are on ${gpio_chip}`, 'correct gpio_chip', () => checkDevicePath(gpio_chip, 'gpio')))
  }
  return findings.length > 0 ? findings : [{ status: 'ok', detail: 'the settings of the robot are sound' }]
}

const pinsOf = ({ safety, sensors }: RobotConfig): readonly number[] => [
  ...(safety.estop_pin === undefined ? [] : [safety.estop_pin]),
  ...safety.bump_sensor_pins,
  ...(sensors.ultrasonic_pins ?? []),
]

async function attempt(detail: string, fix: string, work: () => Promise<unknown>): Promise<Finding> {
  try {
    await work()
    return { status: 'ok', detail }
  } catch (error) {
    return { status: 'fail', detail: errorText(error), fix }
  }
}

const warning = (detail: string, fix: string): Finding => ({ status: 'warn', detail, fix })
