/** The command line of `pnpm chaos`. */
import { parseArgs } from 'node:util'
import { testSeed } from '@sluice/testkit/random'
import { CHANNELS } from '../channels.ts'
import { FAULTS, type FaultName } from '../cluster/faults.ts'
import { PLAY_NAMES } from './promises/all-plays.ts'
import { KIND_NAMES, kindNamesOf } from './start-kinds.ts'

const USAGE = `usage: pnpm chaos [--suite messages|sops] [--loops 100] [--seed N] [--all] [--json] [--out FILE] [--profile minimal] [--store postgres]
       pnpm chaos --suite links [--seconds 10] [--cut reset|silent] [--messages 20] [--channel a,b]
       pnpm chaos --suite cluster [--messages 100000] [--seconds 3600] [--rate 40] [--channel post,line] [--faults none|'kill,suspend'] [--previous]
       pnpm chaos --suite held|arrivals|rooms [--loops 100] [--seed N]
       pnpm chaos --suite burst [--messages 1000] [--kills 10] [--channel a,b]`
/** These run only when they are asked for. */
const ON_REQUEST = ['links', 'burst', 'cluster', ...PLAY_NAMES]
const DEFAULT = ['messages', 'sops']
const CUTS = ['reset', 'silent'] as const

export interface ChaosOptions {
  readonly suites: readonly string[]
  readonly loops: number
  readonly seed: number
  readonly all: boolean
  readonly json: boolean
  /** The backend of `[store]`, for messages, sops and scenarios. */
  readonly store: 'sqlite' | 'postgres'
  readonly out: string | undefined
  readonly profile: string
  /** The names of kinds of messages, for `links` and `burst`. */
  readonly channels: readonly string[]
  readonly messages: number | undefined
  readonly kills: number
  readonly seconds: number | undefined
  /** Messages a second of the cluster. */
  readonly rate: number
  /** The kinds of messages of the cluster; undefined: its own choice. */
  readonly kinds: readonly string[] | undefined
  /** Whether the cluster begins with the previous release. */
  readonly previous: boolean
  /** The faults of the cluster, one after the other; `none` for none; undefined: random ones. */
  readonly faults: readonly FaultName[] | undefined
  readonly cuts: readonly ('reset' | 'silent')[]
}

/** Exits with 2 and the usage if the arguments are wrong. */
export function readOptions(args: readonly string[]): ChaosOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      suite: { type: 'string' },
      loops: { type: 'string', default: '100' },
      seed: { type: 'string', default: String(testSeed()) },
      all: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      out: { type: 'string' },
      profile: { type: 'string', default: 'minimal' },
      channel: { type: 'string' },
      messages: { type: 'string' },
      kills: { type: 'string', default: '10' },
      seconds: { type: 'string' },
      rate: { type: 'string', default: '40' },
      faults: { type: 'string' },
      previous: { type: 'boolean', default: false },
      cut: { type: 'string' },
      store: { type: 'string', default: 'sqlite' },
    },
  })
  const numbers = {
    loops: values.loops,
    seed: values.seed,
    kills: values.kills,
    seconds: values.seconds ?? '1',
    messages: values.messages ?? '1',
    rate: values.rate,
  }
  for (const [name, text] of Object.entries(numbers)) if (!/^\d+$/.test(text)) refuse(`--${name} wants a whole number`)
  const suites = values.suite === undefined ? DEFAULT : [values.suite]
  if (!suites.every((suite) => [...DEFAULT, ...ON_REQUEST].includes(suite))) refuse(`unknown suite '${values.suite}'`)
  const { store } = values
  if (store !== 'sqlite' && store !== 'postgres') refuse(`unknown store '${store}'`)
  const channels = values.channel?.split(',') ?? kindNamesOf(values.profile)
  const unknown = channels.find((name) => !KIND_NAMES.includes(name))
  if (unknown !== undefined) refuse(`channel '${unknown}' is unknown or has no crash kind`)
  const inBundle = kindNamesOf(values.profile)
  const left = channels.find((name) => !inBundle.includes(name))
  if (left !== undefined) refuse(`the profile ${values.profile} leaves out '${left}': build it with --features, and name --profile custom`)
  const cuts = CUTS.filter((cut) => values.cut === undefined || values.cut === cut)
  if (cuts.length === 0) refuse(`unknown cut '${values.cut}'`)
  const missing = CHANNELS.filter(({ testing }) => !testing.crashKind).map(({ name }) => name)
  if (values.channel === undefined && missing.length > 0) console.error(`without a crash kind, so left out: ${missing.join(', ')}`)
  return {
    suites,
    loops: Number(values.loops),
    seed: Number(values.seed),
    all: values.all,
    json: values.json,
    store,
    out: values.out,
    profile: values.profile,
    channels,
    messages: values.messages === undefined ? undefined : Number(values.messages),
    kills: Number(values.kills),
    seconds: values.seconds === undefined ? undefined : Number(values.seconds),
    rate: Number(values.rate),
    kinds: values.channel?.split(','),
    previous: values.previous,
    faults: readFaults(values.faults),
    cuts,
  }
}

function readFaults(text: string | undefined): readonly FaultName[] | undefined {
  const names = text === 'none' ? [] : text?.split(',')
  const unknown = names?.find((name) => !(name in FAULTS))
  if (unknown !== undefined) refuse(`unknown fault '${unknown}'; use one of ${Object.keys(FAULTS).join(', ')}`)
  return names as FaultName[] | undefined
}

function refuse(message: string): never {
  console.error(`${message}\n${USAGE}`)
  process.exit(2)
}
