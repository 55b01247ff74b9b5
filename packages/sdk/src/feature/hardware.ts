/** The port of the devices that a feature controls, for operators (docs/contract.md#hardware). */

/** A board or an adapter, as it was last seen. */
export interface HardwareBoard {
  /** The name by which tools address it, such as `board_a0`. */
  readonly name: string
  /** The kind of board in words, such as `board_a (RP2040)`. */
  readonly title: string
  /** How it is reached: `serial`, `native`, `bridge`, `usb`, or `sim` for a simulated one. */
  readonly transport: string
  /** The device file or the address; null when it has none. */
  readonly path: string | null
  readonly connected: boolean
  /** The client that has the board now; null when none has. */
  readonly holder: DeviceHolder | null
  /** The pins that clients have written and that are reserved for them. */
  readonly pins: readonly HeldPin[]
}

export interface DeviceHolder {
  /** The client, as in `ToolContext.caller`. */
  readonly client: string
  /** When another client may have the device; null while a call runs. */
  readonly untilMs: number | null
}

export interface HeldPin extends DeviceHolder {
  readonly pin: string
}

export interface RobotStatus {
  readonly simulated: boolean
  /** `stopped`: nothing moves until a person resets the robot. `off`: its safety process does not run. */
  readonly state: 'ready' | 'moving' | 'stopped' | 'fault' | 'off'
  /** Why it is stopped, has a fault or is off. */
  readonly reason: string | null
  readonly estopPressed: boolean
  /** The bump sensors that are pressed. */
  readonly touching: readonly string[]
  /** The free distance in each direction: `metres` is null when nothing is in range. */
  readonly ways: readonly { readonly way: string; readonly metres: number | null; readonly sight: 'seen' | 'unseen' | 'blind' }[]
  readonly sensors: readonly { readonly name: string; readonly ageMs: number | null }[]
  readonly holder: DeviceHolder | null
}

export interface Hardware {
  /** Returns the devices as they were last seen. Accesses none. */
  boards?(): Promise<readonly HardwareBoard[]>
  /** Resolves to the state of the robot; undefined when none is configured. Starts nothing. */
  robot?(): Promise<RobotStatus | undefined>
  /** Halts the robot at once. It stays stopped, also over a restart, until a person resets it. Waits for nothing else. */
  stop?(by: string): Promise<void>
  /** Lets a stopped robot move again. Throws `conflict` while its emergency stop is pressed. */
  reset?(by: string): Promise<void>
}
