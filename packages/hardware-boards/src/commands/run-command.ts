/** The contract of a command of this feature. */
import type { CommandContext, Host } from '@sluice/sdk'
import type { PeripheralsConfig } from '../config.ts'
import type { Devices } from '../devices.ts'
import type { Mounts } from '../flash/boot-volume.ts'
import type { Machine } from '../registry/machine.ts'

/** The parts of the feature and of this machine that the commands use. */
export interface Hardware {
  readonly host: Host
  readonly config: PeripheralsConfig
  readonly devices: Devices
  readonly machine: Pick<Machine, 'check' | 'open'>
  /** The mounts of this machine unless given. */
  readonly mounts?: Mounts | undefined
}

/** Resolves to the exit code. */
export type RunCommand = (hardware: Hardware, context: CommandContext) => Promise<number>
