/** The port of features: a profile chooses which channels, tools, providers, sandboxes and exporters a build has. */
import type * as v from 'valibot'
import type { Channel, ChannelHealth } from '../channel/channel.ts'
import type { Observer } from '../observe/observer.ts'
import type { Provider } from '../tool/model.ts'
import type { Sandbox } from '../tool/sandbox.ts'
import type { Tool } from '../tool/tool.ts'
import type { Route } from '../values/route.ts'
import type { ConfigSchema, Section } from '../values/section.ts'
import type { FeatureId, OwnRow } from './catalogue.ts'
import type { Command } from './command.ts'
import type { Hardware } from './hardware.ts'
import type { Host, Services } from './host.ts'
import type { SocketRoute } from './socket.ts'
import type { StoreBackend } from './store-backend.ts'

/** The parts that a feature adds. The catalogue row of the feature lists the same names. */
export interface Parts {
  readonly channels?: readonly Channel[]
  /** Read again after `register` for features that name their own tools, so a getter may return what `register` found. */
  readonly tools?: readonly Tool[]
  readonly routes?: readonly Route[]
  /** WebSockets; the catalogue row lists each as `GET <path>`. */
  readonly sockets?: readonly SocketRoute[]
  readonly commands?: readonly Command[]
  readonly providers?: readonly Provider[]
  readonly sandboxes?: readonly Sandbox[]
  readonly observers?: readonly Observer[]
  readonly services?: Partial<Services>
  /** The reason why the configuration turns the feature off, such as `enabled = false`. Only `commands` are then used. */
  readonly disabledReason?: string
  /** Returns what the machine is missing for the feature and how to install it, for `sluice features`. Must be quick. */
  missingRequirement?(): string | undefined
  /** Tries the feature on this machine, for `sluice doctor`, and reports what to install where it cannot work. */
  check?(signal: AbortSignal): Promise<readonly Finding[]>
  /** Returns the state of the connections that the feature keeps open, channels excepted. Makes no request. */
  links?(): readonly LinkHealth[]
  /** The devices that the feature controls, for operators. */
  readonly hardware?: Hardware
  /** Returns lines for the system prompt, at each turn. */
  prompt?(): string
  /** Phase 2, registration: checks credentials and discovers devices, once for each build. A rejection marks the feature as failed. */
  register?(signal: AbortSignal): Promise<void>
  /**
   * Runs once before `close`, when the daemon stops or another build replaces this one, which registers afterwards. Turns may
   * use the old parts for a long time; end here what must not go on meanwhile, such as motors.
   */
  drain?(): Promise<void>
  /** Phase 4, shutdown: runs in reverse order and must be idempotent. In phase 3 the parts are in use. */
  close?(): Promise<void>
}

/** A connection that a feature keeps open, such as the one to a broker. */
export interface LinkHealth {
  readonly name: string
  readonly state: ChannelHealth['state']
}

/** One result of a check. */
export interface Finding {
  readonly status: 'ok' | 'warn' | 'fail'
  readonly detail: string
  /** The remedy, for a finding that is not `ok`. */
  readonly fix?: string
}

export interface Feature<Schema extends ConfigSchema = ConfigSchema> {
  /** Equals the folder and the catalogue key. A feature of an embedder starts with `x-`. */
  readonly id: FeatureId
  readonly section?: Section<Schema>
  /**
   * Further sections of a feature that brings only channels and their checks, such as one for another region of a platform. Each of them has a channel
   * of its own with the name of the section, and a value that `build` accepts.
   */
  readonly moreSections?: readonly Section[]
  /** Finds mistakes that only several sections together show. `values` has the sections that are configured and turned on, by path. */
  checkSections?(values: ReadonlyMap<string, object>): readonly SectionProblem[]
  /** The catalogue row of a feature whose id starts with `x-`; the catalogue has the rows of all other features. */
  readonly row?: OwnRow
  /** The store that the feature brings, for `[store] backend`. It is opened before any feature is built. */
  readonly storeBackend?: StoreBackend
  /**
   * Phase 1, construction: synchronous and without I/O. Commands that never start the daemon call it, too. The feature may
   * keep `host` and call its methods from phase 2 on. Runs once for each configured section of a feature with several; `path`
   * names the section, and is absent for `section`.
   */
  build(host: Host, config: v.InferOutput<Schema>, path?: string): Parts
}

/** A mistake in one of several sections. */
export interface SectionProblem {
  /** The path of the section, such as `channels_config.workchat`. */
  readonly section: string
  readonly key: string
  /** Why the value is wrong, and how to correct it. */
  readonly message: string
}

/** Returns all sections of a feature. */
export const sectionsOfFeature = ({ section, moreSections = [] }: Pick<Feature, 'section' | 'moreSections'>): readonly Section[] =>
  section ? [section, ...moreSections] : []

/** Returns its argument; types `config` from `section.schema`. */
export const defineFeature = <const Schema extends ConfigSchema>(feature: Feature<Schema>): Feature => feature as unknown as Feature
