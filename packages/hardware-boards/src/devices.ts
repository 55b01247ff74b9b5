/** The boards of this machine, found or configured, each with a stable alias. */
import type { Board, HeldDevices } from '@sluice/hardware'
import { AppError, type HardwareBoard } from '@sluice/sdk'

export interface UsbIdentity {
  /** Four lower-case hexadecimal digits. */
  readonly vendor: string
  readonly product: string
  /** Null when the device has none; it is then identified by the port it is plugged into. */
  readonly serialNumber: string | null
  readonly manufacturer: string | null
}

export interface Device {
  /** A name such as `board_a0`, which stays the same after a restart and when the device is unplugged. */
  readonly alias: string
  /** The entry of the table of boards; undefined for a board that is not in it. */
  readonly board: Board | undefined
  readonly transport: 'serial' | 'native' | 'bridge' | 'sim'
  /** The current or last serial port, or `host:port`; null for `native` and `sim`. */
  readonly path: string | null
  readonly baud: number
  readonly usb: UsbIdentity | null
  readonly connected: boolean
}

/**
 * For `Tool.precheck`. Throws `unavailable` when the device is not connected. A bridge is not checked, because only a call
 * shows whether it answers.
 */
export function checkConnected({ alias, transport, connected }: Device): void {
  if (!connected && transport !== 'bridge') throw new AppError('unavailable', `${alias} is not connected`)
}

/** A board that is not in the table of boards may run MicroPython too. */
export const mayRunMicropython = ({ board, transport }: Device): boolean =>
  transport === 'serial' && (board === undefined || board.runtime === 'micropython')

/** A USB device, whether or not it is a board. Hubs are left out. */
export interface UsbSeen {
  /** Four lower-case hexadecimal digits. */
  readonly vendor: string
  readonly product: string
  /** The product name that the device reports, or empty. */
  readonly name: string
}

/** An open line to a board, which transports bytes. */
export interface Port {
  write(bytes: Uint8Array): Promise<void>
  /** Calls back with the bytes that arrive, and returns an unsubscribe function. */
  onData(callback: (bytes: Uint8Array) => void): () => void
  /** Calls back once, when the other end is gone or `close` was called. Returns an unsubscribe function. */
  onClose(callback: () => void): () => void
  /** Sets the modem lines. Does nothing on a line without them. */
  signals(lines: { readonly dtr?: boolean; readonly rts?: boolean }): Promise<void>
  close(): Promise<void>
}

export interface Devices {
  /** Returns all known devices, the connected ones first, then by alias. */
  all(): readonly Device[]
  /** Returns the USB devices of the last scan, boards and others. */
  seen(): readonly UsbSeen[]
  /** Resolves after the first scan, or after 2 s. No device is known before; tools wait for this. */
  ready(signal: AbortSignal): Promise<void>
  /** Scans again, for at most 2 s, and resolves to the known devices. */
  discover(signal: AbortSignal): Promise<readonly Device[]>
  /**
   * Returns the device with the alias or, without an alias, the only device that fits. Throws `not_found` with the USB devices
   * when no device fits, and `invalid_request` with the aliases when several fit.
   */
  pick(alias: string | undefined, fits?: (device: Device) => boolean): Device
  /**
   * Gives `work` exclusive use of the port: the line protocol to the board stops before and starts again afterwards. Throws
   * `unavailable` when the device is not connected or the port cannot be opened.
   */
  withPort<Result>(alias: string, signal: AbortSignal, work: (port: Port) => Promise<Result>): Promise<Result>
  /**
   * Waits for a board that is restarting. Resolves when the same board, by its serial number or its place, is connected
   * again, or after 1.5 s when it never left. Throws `upstream_timeout`.
   */
  comeBack(alias: string, timeoutMs: number, signal: AbortSignal): Promise<Device>
}

const NAMED_MAX = 32

/** Returns the name and chip of the board. */
export const boardText = ({ board }: Device): string => (board ? `${board.name} (${board.chip})` : 'an unknown board')

/** Returns the boards as operators see them. */
export const shownBoards = (devices: readonly Device[], { holders, pins }: HeldDevices): HardwareBoard[] =>
  devices.map((device) => ({
    name: device.alias,
    title: boardText(device),
    transport: device.transport,
    path: device.path,
    connected: device.connected,
    holder: holders.get(device.alias) ?? null,
    pins: pins.get(device.alias) ?? [],
  }))

/** Returns the part of the system prompt that lists the devices, or an empty text without devices. */
export function devicesPrompt(devices: readonly Device[]): string {
  if (devices.length === 0) return ''
  const lines = devices.slice(0, NAMED_MAX).map((device) => {
    const { alias, transport, connected } = device
    const how = transport === 'serial' ? '' : transport === 'sim' ? ', simulated' : `, ${transport}`
    return `- ${alias}: ${boardText(device)}${how}, ${connected ? 'connected' : 'not connected'}`
  })
  return ['Hardware devices, by the alias that their tools take as `device`:', ...lines].join('\n')
}
