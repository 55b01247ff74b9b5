/** What a feature is given at construction: its only way to the outside. */
import type * as v from 'valibot'
import type { FeatureId } from './catalogue.ts'
import type { StartCompanion } from './companion.ts'
import type { Events } from './events.ts'
import type { Logger } from './logger.ts'
import type { Vitals } from './observer.ts'
import type { Policy } from './policy.ts'
import type { Role } from './route.ts'
import type { Spawn } from './sandbox.ts'
import type { Sops } from './sop.ts'
import type { KeyValue, Memories } from './store.ts'
import type { ToolContext } from './tool.ts'
import type { Workspace } from './workspace.ts'

export interface Clock {
  nowMs(): number
  /** Milliseconds that never go backwards, for durations. */
  monotonicMs(): number
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects, never keeps the process alive. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** Small secrets a feature makes or is handed at run time, encrypted at rest under the feature's name. */
export interface SecretStore {
  get(name: string): Promise<string | undefined>
  set(name: string, value: string): Promise<void>
  delete(name: string): Promise<void>
}

/** What features may know of paired devices. */
export interface Pairing {
  /** Those of the devices that were revoked together with their passkeys. */
  revokedAmong(devices: readonly string[]): Promise<readonly string[]>
  /** The device that was paired: `device` itself, or the one that vouched for it. */
  originOf(device: string): Promise<string>
}

/** What features and the core offer each other by name. A consumer asks at run time and handles `undefined`. */
export interface Services {
  readonly memory: Memories
  readonly vitals: () => Vitals
  /** The engine of procedures; absent in commands that run without a daemon. */
  readonly sops: Sops
  /** A new paired device and its bearer token, as pairing makes them; for features that prove who somebody is. */
  readonly issueToken: (device: {
    readonly name: string
    readonly role: Role
    readonly expiresAtMs: number | null
    /** The device that vouches for it: revoking that one revokes this one, too. */
    readonly issuedBy: string | null
  }) => Promise<IssuedToken>
  readonly pairing: Pairing
  /** One record in the audit log, durable once it resolves: what is about to happen to the world outside, and who caused it. */
  readonly audit: (record: DeviceRecord) => Promise<void>
  /** The pins of this very machine, where a feature can reach them. */
  readonly nativeGpio: SharedGpio
  /** Live readings of a chip over its debug port. */
  readonly chipProbe: ChipProbe
  /** Adds to the configuration file; absent but in commands. Throws like `sluice config set`. */
  readonly addToConfig: (addition: ConfigAddition) => Promise<void>
  /** A TOML file of a feature's own, such as `robot.toml`; undefined: there is none. Throws `config_invalid` with line and column. */
  readonly readToml: <Schema extends v.GenericSchema>(file: string, schema: Schema) => Promise<v.InferOutput<Schema> | undefined>
  /** Present when `[transcription]` is enabled. */
  readonly transcribe: Transcribe
  /** The text of a PDF, page by page. Throws `invalid_request` for a file that is broken, encrypted or too large. */
  readonly pdfText: (pdf: Uint8Array, options: { readonly pages?: string; readonly signal: AbortSignal }) => Promise<string[]>
}

export interface ConfigAddition {
  /** A list of tables, such as `peripherals.boards`, that gets one more at its end. */
  readonly list: string
  readonly entry: Readonly<Record<string, string | number | boolean>>
  /** Keys that are set along with it, by their paths. */
  readonly set?: Readonly<Record<string, string | number | boolean>>
}

/** The text of a recording. Throws `invalid_request` for what is no audio, `unavailable` for what may succeed later. */
export type Transcribe = (
  audio: { readonly bytes: Uint8Array; readonly name: string; readonly mime?: string },
  options: { readonly signal: AbortSignal },
) => Promise<string>

export interface DeviceRecord {
  /** As in `SopEvent.by`. */
  readonly by: string
  /** JSON; no secret. */
  readonly detail: Readonly<Record<string, unknown>>
}

/** By the numbers the board's own documentation gives its pins. Throws `invalid_request` for one that is not there or reserved. */
export interface NativeGpio {
  read(pin: number): Promise<0 | 1>
  write(pin: number, value: 0 | 1): Promise<void>
}

/** For all features that reach these pins, so that none goes past the leases and reservations of another. */
export interface SharedGpio extends NativeGpio {
  /** Whether this machine has such pins, as far as is known yet. */
  readonly isThere: boolean
  /** Runs one transaction of a client; throws `conflict` while the pins, or one of them, are another client's. */
  use<Result>(use: PinUse, work: () => Promise<Result>): Promise<Result>
}

export interface PinUse {
  readonly tool: string
  readonly context: ToolContext
  /** What is written, for the audit log. Absent: it only reads. */
  readonly write?: Readonly<Record<string, unknown>>
  /** Written pins, which are then this client's. */
  readonly pins?: readonly (number | string)[]
}

/** Boards by their name in the configuration; throws `invalid_request` for one that cannot be read live, `unavailable` otherwise. */
export interface ChipProbe {
  info(board: string, signal: AbortSignal): Promise<ChipInfo>
}

export interface ChipInfo {
  readonly chip: string
  readonly architecture: string
  /** As read from the chip itself, in bytes. */
  readonly memory: readonly { readonly name: string; readonly start: number; readonly length: number }[]
}

export interface IssuedToken {
  readonly token: string
  readonly deviceId: string
}

/** An address a name stands for, as `node:dns` tells it. */
export interface ResolvedAddress {
  readonly address: string
  /** 4 or 6. */
  readonly family: number
}

export interface PublicRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Ends the request, and the body that is still being read. */
  readonly signal: AbortSignal
  /** Reading beyond it ends the body with an error. */
  readonly responseBytesMax?: number
  /** Asked before each hop, redirects included; throws to refuse. */
  readonly admit?: (url: URL) => void
}

export interface Host {
  readonly feature: FeatureId
  readonly log: Logger
  readonly clock: Clock
  /** Outbound HTTP to addresses the operator configured. */
  readonly fetch: typeof fetch
  /**
   * Outbound HTTP to addresses a model or a stranger named: http and https only, no credentials in the URL, every address
   * the name resolves to is public, the connection goes to the address that was checked, and each redirect (at most 5) is
   * checked anew. Throws `forbidden` for what it refuses. `[http] allow_private` lists hosts exempt from the address check.
   */
  readonly publicFetch: (url: string, init: PublicRequest) => Promise<Response>
  /**
   * Where a connection to such a host may go, for what is no request of `publicFetch`: every address it has, by the same
   * rule. Connect to one of these and resolve nothing anew. Throws `forbidden` if one of them is not public, `upstream` if
   * there is none.
   */
  readonly publicAddresses: (hostname: string, signal: AbortSignal) => Promise<readonly ResolvedAddress[]>
  /** The only way to start a program. */
  readonly spawn: Spawn
  /** Runs a module of the feature's own in a process beside the daemon. */
  readonly companion: StartCompanion
  /** Durable keys of this feature alone. */
  readonly keyValue: KeyValue
  readonly secrets: SecretStore
  readonly events: Events
  readonly policy: Policy
  readonly workspace: Workspace
  /** The per-user data directory, absolute. A feature keeps its files in a folder of its own name there. */
  readonly dataDir: string
  /** Asks the daemon to build this feature anew, as when a device came or went; what runs ends on the old parts first. */
  rebuild(reason: string): void
  /** Asks the daemon to look again at which of this feature's tools are `available`. */
  refresh(reason: string): void
  service<Name extends keyof Services>(name: Name): Services[Name] | undefined
}
