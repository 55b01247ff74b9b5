/** How a channel is set up: what to do at the platform, step by step, with the fields in which its secrets belong, a check and a test message. */

import { GUIDES, type Way } from 'virtual:channel-guides'
import { useState } from 'preact/hooks'
import type { Got } from '../data/api.ts'
import { REFRESH_MS, useApi } from '../data/queries.ts'
import { to, useParams } from '../data/router.ts'
import { fieldValue, type Schema, type Setting, sectionsOf } from '../data/settings.ts'
import { Address, usePublicUrl } from '../ui/address.tsx'
import { Act, BuildCommand, Choose } from '../ui/controls.tsx'
import { Badge, Card, Empty, Loaded, Note, Page, Problem } from '../ui/parts.tsx'
import { OwnText } from '../ui/rich-text.tsx'
import { Checks, Test } from './channels.tsx'
import { type Change, type Preview, previewOf, Review, SettingField } from './configuration.tsx'

type Config = Got<'/api/config'>

export function ChannelGuide() {
  const { name = '' } = useParams<{ name: string }>()
  const feature = `channel-${name}`
  const features = useApi('/api/features', {})
  const ways = GUIDES[feature] ?? []
  const [chosen, setChosen] = useState(0)
  const way = ways[chosen] ?? ways[0]
  return (
    <Page
      title={`Set up ${features.data?.features.find((one) => one.feature === feature)?.summary ?? name}`}
      about={<a href="#/channels">All channels</a>}
      actions={
        ways.length > 1 && (
          <Choose
            label="Way"
            value={String(chosen)}
            options={ways.map(({ title }, index) => [String(index), title || 'usual'])}
            onChange={(value) => setChosen(Number(value))}
          />
        )
      }
    >
      <Loaded query={features}>
        {({ features: rows }) => {
          const row = rows.find((one) => one.feature === feature)
          if (!way) return <Empty>This channel has no steps. Its package describes how it is set up.</Empty>
          return (
            <>
              {row?.build && (
                <Note tone="warn">
                  This build does not contain the channel. <BuildCommand command={row.build} />
                </Note>
              )}
              <WayView key={`${name} ${chosen}`} feature={feature} way={way} isBuilt={row?.compiled ?? false} />
            </>
          )
        }}
      </Loaded>
    </Page>
  )
}

interface WayProps {
  readonly feature: string
  readonly way: Way
  readonly isBuilt: boolean
}

function WayView({ feature, way, isBuilt }: WayProps) {
  const config = useApi('/api/config', {})
  const schema = useApi('/api/config/schema', {})
  return (
    <Loaded query={config}>
      {(data) => (
        <Loaded query={schema}>
          {(shape) => (
            <Steps feature={feature} way={way} config={data} settings={isBuilt ? settingsOf(shape as Schema, way.section) : []} />
          )}
        </Loaded>
      )}
    </Loaded>
  )
}

const settingsOf = (schema: Schema, section: string): readonly Setting[] =>
  sectionsOf(schema, () => [])
    .flatMap(({ parts }) => parts)
    .find(({ path }) => path === section)?.settings ?? []

/** A word of a step in the form of code is a key where the section has one of this name. */
const namesIn = (step: string): readonly string[] => [...step.matchAll(/`(\w+)`/g)].map(([, name = '']) => name)

/** Returns the keys of each step. A key stands at the first step that names it, and a key that no step names where the keys are saved. */
function keysOf({ steps, keys, saving }: Way, settings: readonly Setting[]): readonly (readonly Setting[])[] {
  const names = steps.map(namesIn)
  const stepOf = (name: string) => {
    const first = names.findIndex((each) => each.includes(name))
    return first < 0 && keys.includes(name) ? saving : first
  }
  return steps.map((_, index) => settings.filter(({ name }) => stepOf(name) === index))
}

interface StepsProps {
  readonly feature: string
  readonly way: Way
  readonly config: Config
  readonly settings: readonly Setting[]
}

function Steps({ feature, way, config, settings }: StepsProps) {
  const publicUrl = usePublicUrl()
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({})
  const [review, setReview] = useState<{ readonly changes: readonly Change[]; readonly preview: Preview } | undefined>()
  const [problem, setProblem] = useState<unknown>()
  const known = new Map(config.keys.map((one) => [one.key, one]))
  const keys = keysOf(way, settings)
  const look = async () => {
    setProblem(undefined)
    try {
      const changes = settings.flatMap(({ key, schema }) =>
        texts[key] === undefined ? [] : [{ key, value: fieldValue(schema, texts[key]) }],
      )
      setReview({ changes, preview: await previewOf(changes) })
    } catch (error) {
      setProblem(error)
    }
  }
  return (
    <>
      {!config.editable && <Note>The configuration cannot be changed here: the program that embeds the gateway holds it.</Note>}
      {way.steps.map((step, index) => {
        const isSaving = index === way.saving
        const text = step.replaceAll('<public url>', publicUrl)
        return (
          <Card key={index} title={`${index + 1}. ${isSaving ? 'Save' : 'At the platform'}`} padded>
            <div class="stack wide">
              {isSaving ? <SavingText text={text} /> : <OwnText value={text} />}
              {addressesIn(text, publicUrl).map((url) => (
                <Address key={url} url={url} />
              ))}
              {keys[index]?.map((setting) => (
                <SettingField
                  key={setting.key}
                  setting={setting}
                  known={known.get(setting.key)}
                  text={texts[setting.key]}
                  isFixed={!config.editable}
                  onText={(typed) => {
                    const { [setting.key]: _, ...rest } = texts
                    setTexts(typed === undefined ? rest : { ...rest, [setting.key]: typed })
                  }}
                />
              ))}
              {isSaving && (
                <>
                  {problem !== undefined && <Problem error={problem} />}
                  <div class="row">
                    <Act class="primary" work={look} disabled={Object.keys(texts).length === 0}>
                      Review and save
                    </Act>
                    <a href={`#/configuration?section=${way.section}`}>All settings of this channel</a>
                  </div>
                </>
              )}
            </div>
          </Card>
        )
      })}
      <Trial feature={feature} number={way.steps.length + 1} />
      {review && (
        <Review
          {...review}
          onClose={() => setReview(undefined)}
          onSaved={() => {
            setReview(undefined)
            setTexts({})
          }}
        />
      )}
    </>
  )
}

/** What the README says to readers of a file, for readers of a form: the sentences after the first one hold for both. */
const SavingText = ({ text }: { readonly text: string }) => {
  const [first = '', ...others] = text.split(/(?<=\.) /)
  const where = /start Sluice (where .*)\.$/.exec(first)?.[1]
  return (
    <OwnText
      value={[
        `Save what you have filled in. Sluice takes it over within a second${where ? `, and must run ${where}` : ''}.`,
        ...others,
      ].join(' ')}
    />
  )
}

/** The addresses of this daemon in a step. */
const addressesIn = (text: string, publicUrl: string): readonly string[] => [
  ...new Set(text.split(/[\s`"]/).filter((word) => word.startsWith(publicUrl) && URL.canParse(word))),
]

/** The check of the channel and a message over it, once it is configured. */
function Trial({ feature, number }: { readonly feature: string; readonly number: number }) {
  const channels = useApi('/api/channels', {}, { refreshMs: REFRESH_MS })
  const [isTesting, setTesting] = useState(false)
  const channel = channels.data?.channels.find((one) => one.feature === feature)
  if (!channel)
    return (
      <Card title={`${number}. Try it`} padded>
        <p>Once the channel is saved, it is checked here, and a test message is sent.</p>
      </Card>
    )
  return (
    <>
      <Card title={`${number}. Try it`} actions={<Badge state={channel.state} />} padded>
        <div class="stack">
          <p>
            {channel.detail ?? 'Write to the agent on the platform, or let it write.'}{' '}
            <a href={to('channels', channel.channel)}>Open the channel</a>
          </p>
          <div class="row">
            <button type="button" class="primary" disabled={channel.target === null} onClick={() => setTesting(true)}>
              Send a test message
            </button>
            {channel.target === null && <span class="quiet">It sends only answers: write to it on the platform.</span>}
          </div>
        </div>
      </Card>
      <Checks channel={channel} />
      {isTesting && <Test channel={channel} onClose={() => setTesting(false)} />}
    </>
  )
}
