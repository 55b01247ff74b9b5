/** What somebody should know before this robot moves: for `sluice doctor` and the log. */
import { checkDevicePath, type Gpio, isDevicePath, openGpio } from '@sluice/hardware'
import { errorText, type Finding } from '@sluice/sdk'
import { chipNamed } from './chip-named.ts'
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

/** The same, and whether its parts are there; neither port nor pin is opened: the daemon may be using them. */
export async function checkRobot(config: RobotConfig, open: () => Promise<Pick<Gpio, 'chips'>> = openGpio): Promise<readonly Finding[]> {
  const findings = [...warningsOf(config)]
  if (!isSimulated(config)) {
    const { serial_port } = config.drive
    findings.push(
      await attempt('connect it, or correct serial_port', async () => {
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
          const chip = await chipNamed(await open(), gpio_chip)
          if (chip === gpio_chip) await checkDevicePath(chip, 'gpio')
          return `the pins are on ${chip}`
        }),
      )
  }
  return findings.length > 0 ? findings : [{ status: 'ok', detail: 'the settings of the robot are sound' }]
}

const pinsOf = ({ safety, sensors }: RobotConfig): readonly number[] => [
  ...(safety.estop_pin === undefined ? [] : [safety.estop_pin]),
  ...safety.bump_sensor_pins,
  ...(sensors.ultrasonic_pins ?? []),
]

/** `work` gives what is well. */
async function attempt(fix: string, work: () => Promise<string>): Promise<Finding> {
  try {
    return { status: 'ok', detail: await work() }
  } catch (error) {
    return { status: 'fail', detail: errorText(error), fix }
  }
}

const warning = (detail: string, fix: string): Finding => ({ status: 'warn', detail, fix })
