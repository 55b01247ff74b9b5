/** The boards of this machine, as tools and commands see them: found or configured, each under a stable alias. */
import type { Board } from '@sluice/hardware'
import { AppError } from '@sluice/sdk'

export interface UsbIdentity {
  /** Four lower-case hexadecimal digits. */
  readonly vendor: string
  readonly product: string
  /** Null: the device has none, and is told from others by the port it is plugged into. */
  readonly serialNumber: string | null
  readonly manufacturer: string | null
}

export interface Device {
  /** `board_a0`; the same one after a restart and after it was unplugged. */
  readonly alias: string
  /** What it is by the table; undefined: a board that is not in it. */
  readonly board: Board | undefined
  readonly transport: 'serial' | 'native' | 'bridge' | 'sim'
  /** The serial port or `host:port` where it is now, or was last; null for `native` and `sim`. */
  readonly path: string | null
  readonly baud: number
  readonly usb: UsbIdentity | null
  readonly connected: boolean
}

/** For `Tool.precheck`. Throws `unavailable`. Whether a bridge answers shows only when it is asked. */
export function checkConnected({ alias, transport, connected }: Pick<Device, 'alias' | 'transport' | 'connected'>): void {
  if (!connected && transport !== 'bridge') throw new AppError('unavailable', `${alias} is not connected`)
}

/** Anything on USB, a board or not; hubs are left out. */
export interface UsbSeen {
  /** Four lower-case hexadecimal digits. */
  readonly vendor: string
  readonly product: string
  /** As the device calls itself; empty: it does not. */
  readonly name: string
}

/** An open line to a board: bytes, nothing else. */
export interface Port {
  write(bytes: Uint8Array): Promise<void>
  /** Calls back with what arrives, until the returned function is called. */
  onData(callback: (bytes: Uint8Array) => void): () => void
  /** Calls back once, when the other end is gone or `close` was called. */
  onClose(callback: () => void): () => void
  /** Modem lines; does nothing where the line has none. */
  signals(lines: { readonly dtr?: boolean; readonly rts?: boolean }): Promise<void>
  close(): Promise<void>
}

export interface Devices {
  /** Those connected first, then by alias. */
  all(): readonly Device[]
  /** What USB showed at the last look, boards and others. */
  seen(): readonly UsbSeen[]
  /** Resolves when it has been looked for devices once, after at most 2 s. Before it nothing is known: tools wait for it. */
  ready(signal: AbortSignal): Promise<void>
  /** Looks for devices anew, at most 2 s; resolves to what is then known. */
  discover(signal: AbortSignal): Promise<readonly Device[]>
  /**
   * The device of that alias or, without one, the only one that fits. Throws `not_found` naming what USB shows when there
   * is none, `invalid_request` listing the aliases when there are several.
   */
  pick(alias: string | undefined, fits?: (device: Device) => boolean): Device
  /**
   * Gives a port to `work` alone: the line protocol to that board stops before and begins anew after. Throws `unavailable`
   * when it cannot be opened or is not connected.
   */
  withPort<Result>(alias: string, signal: AbortSignal, work: (port: Port) => Promise<Result>): Promise<Result>
  /**
   * Resolves when the same board (by serial number, or by its place) is connected again, or after a moment if it never left;
   * rejects with `upstream_timeout`.
   */
  comeBack(alias: string, timeoutMs: number, signal: AbortSignal): Promise<Device>
}
