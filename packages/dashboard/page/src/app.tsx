/** The whole page: signing in, the frame around every place, and the places. */
import { effect, signal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Route, Router, Switch } from 'wouter-preact'
import { brokenSince, connect, disconnect, link, watchNetwork } from './data/live.ts'
import { useOverview } from './data/queries.ts'
import { useHashLocation } from './data/router.ts'
import { role, session } from './data/session.ts'
import { THEMES, theme } from './data/theme.ts'
import { Overview } from './pages/overview.tsx'
import { begin, keepSession, SignIn, signOut } from './pages/sign-in.tsx'
import { Questions } from './ui/dialog.tsx'
import { Icon, type IconName, Mark } from './ui/icon.tsx'
import { Page, Problem } from './ui/parts.tsx'
import { Toasts } from './ui/toast.tsx'
import { ClockTime } from './ui/values.tsx'

interface Place {
  readonly path: string
  readonly name: string
  readonly icon: IconName
  /** Whether a client may see it; any other place is for operators. */
  readonly forClients?: true
}

const PLACES: readonly (readonly [group: string, places: readonly Place[]])[] = [
  [
    'Work',
    [
      { path: '/', name: 'Overview', icon: 'overview' },
      { path: '/chat', name: 'Chat', icon: 'chat', forClients: true },
      { path: '/approvals', name: 'Approvals', icon: 'approvals', forClients: true },
      { path: '/deliveries', name: 'Deliveries', icon: 'deliveries' },
      { path: '/procedures', name: 'Procedures', icon: 'procedures' },
    ],
  ],
  [
    'Connections',
    [
      { path: '/channels', name: 'Channels', icon: 'channels' },
      { path: '/devices', name: 'Devices', icon: 'devices' },
      { path: '/hardware', name: 'Hardware', icon: 'hardware' },
      { path: '/tools', name: 'Tools and skills', icon: 'tools' },
    ],
  ],
  [
    'System',
    [
      { path: '/features', name: 'Features', icon: 'features' },
      { path: '/configuration', name: 'Configuration', icon: 'config' },
      { path: '/logs', name: 'Logs and events', icon: 'logs' },
    ],
  ],
]

/** Loads the code of a place when it is first opened. */
function later(load: () => Promise<ComponentType>): ComponentType {
  let loaded: ComponentType | undefined
  return function Later() {
    const [, setShown] = useState(false)
    const [failure, setFailure] = useState<unknown>()
    useEffect(() => {
      if (!loaded)
        load().then(
          (component) => {
            loaded = component
            setShown(true)
          },
          () => setFailure(new Error('This part of the page could not be loaded. The gateway may have been updated: reload the page.')),
        )
    }, [])
    if (loaded) {
      const Loaded = loaded
      return <Loaded />
    }
    return failure ? <Problem error={failure} retry={() => location.reload()} /> : <p class="loading">Loading…</p>
  }
}

const Chat = later(async () => (await import('./pages/chat.tsx')).Chat)
const Approvals = later(async () => (await import('./pages/approvals.tsx')).Approvals)
const Deliveries = later(async () => (await import('./pages/deliveries.tsx')).Deliveries)
const InboxEntry = later(async () => (await import('./pages/deliveries.tsx')).InboxEntry)
const OutboxEntry = later(async () => (await import('./pages/deliveries.tsx')).OutboxEntry)
const Procedures = later(async () => (await import('./pages/procedures.tsx')).Procedures)
const Procedure = later(async () => (await import('./pages/procedures.tsx')).Procedure)
const RunPage = later(async () => (await import('./pages/procedures.tsx')).RunPage)
const Channels = later(async () => (await import('./pages/channels.tsx')).Channels)
const ChannelPage = later(async () => (await import('./pages/channels.tsx')).ChannelPage)
const Configuration = later(async () => (await import('./pages/configuration.tsx')).Configuration)
const Setup = later(async () => (await import('./pages/setup.tsx')).Setup)
const Devices = later(async () => (await import('./pages/devices.tsx')).Devices)
const Tools = later(async () => (await import('./pages/tools.tsx')).Tools)
const Features = later(async () => (await import('./pages/features.tsx')).Features)
const Hardware = later(async () => (await import('./pages/hardware.tsx')).Hardware)
const LogLines = later(async () => (await import('./pages/log-lines.tsx')).LogLines)
const Logs = later(async () => (await import('./pages/logs.tsx')).Logs)

const ROUTES: readonly (readonly [path: string, component: ComponentType])[] = [
  ['/', Start],
  ['/chat/:id?', Chat],
  ['/approvals', Approvals],
  ['/deliveries/inbox/:number', InboxEntry],
  ['/deliveries/outbox/:number', OutboxEntry],
  ['/deliveries/:box?', Deliveries],
  ['/procedures/:name', Procedure],
  ['/procedures', Procedures],
  ['/runs/:id', RunPage],
  ['/channels/:name', ChannelPage],
  ['/channels', Channels],
  ['/configuration', Configuration],
  ['/setup', Setup],
  ['/devices', Devices],
  ['/tools', Tools],
  ['/features', Features],
  ['/hardware', Hardware],
  ['/logs/lines', LogLines],
  ['/logs', Logs],
]

/** A client has no overview: it starts with the chat. */
function Start() {
  return role.value === 'operator' ? <Overview /> : <Chat />
}

const menuOpen = signal(false)

function Side() {
  const [place] = useHashLocation()
  const overview = useOverview(role.value === 'operator')
  const { status } = overview.data ?? {}
  const counts: Readonly<Record<string, number>> = {
    '/approvals': status?.queues.approvals_pending ?? 0,
    '/deliveries': (status?.queues.messages_dead ?? 0) + (status?.queues.replies_dead ?? 0) + (status?.queues.replies_ambiguous ?? 0),
  }
  const isHere = (path: string) => place === path || (path !== '/' && place.startsWith(`${path}/`))
  return (
    <div class="side">
      <a class="brand" href="#/">
        <Mark /> Sluice
      </a>
      <nav aria-label="Pages">
        {PLACES.map(([group, all]) => [group, all.filter(({ forClients }) => forClients || role.value === 'operator')] as const).map(
          ([group, places]) => (
            <div key={group} hidden={places.length === 0}>
              <h2>{group}</h2>
              <ul>
                {places.map(({ path, name, icon }) => (
                  <li key={path}>
                    <a href={`#${path}`} aria-current={isHere(path) ? 'page' : undefined} onClick={() => (menuOpen.value = false)}>
                      <Icon name={icon} />
                      {name}
                      {counts[path] ? (
                        <span class="count">
                          {counts[path]}
                          <span class="hidden-text"> waiting</span>
                        </span>
                      ) : null}
                    </a>
                  </li>
                ))}
              </ul>
            </div>
          ),
        )}
      </nav>
      <footer>
        <LinkState />
        <label class="row">
          <span>Theme</span>
          <select
            value={theme.value}
            onChange={({ currentTarget }) => (theme.value = THEMES.find((one) => one === currentTarget.value) ?? 'system')}
          >
            {THEMES.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </label>
        <div class="row spread">
          <span>{status ? `${status.version} · ${status.profile}` : ''}</span>
          <button type="button" class="small plain" onClick={() => void signOut()}>
            Sign out
          </button>
        </div>
      </footer>
    </div>
  )
}

const LINK_TEXT = { live: 'Live', connecting: 'Connecting…', broken: 'Disconnected' } as const

const LinkState = () => <span class={`live ${link.value === 'broken' ? 'broken-link' : link.value}`}>{LINK_TEXT[link.value]}</span>

const Broken = () => (
  <div role="status">
    {link.value === 'broken' && brokenSince.value && (
      <div class="broken">
        <span>
          Disconnected since <ClockTime at={brokenSince.value.toISOString()} />. What is shown may be old; the page reconnects by itself.
        </span>
        <button type="button" class="small" onClick={connect}>
          Reconnect now
        </button>
      </div>
    )}
  </div>
)

const Nowhere = () => (
  <Page title="There is nothing here">
    <p>
      <a href="#/">Go to the overview</a>
    </p>
  </Page>
)

function Frame() {
  const isOpen = menuOpen.value
  return (
    <div class={`shell ${isOpen ? 'menu-open' : ''}`}>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault()
          document.querySelector<HTMLElement>('main h1')?.focus()
        }}
      >
        Skip to the content
      </a>
      <div class="top">
        <header class="bar">
          <button type="button" class="plain icon" aria-label="Menu" aria-expanded={isOpen} onClick={() => (menuOpen.value = !isOpen)}>
            <Icon name="menu" />
          </button>
          <span class="brand grow">Sluice</span>
          <LinkState />
        </header>
        <Broken />
      </div>
      {isOpen && <button type="button" class="scrim" aria-label="Close the menu" onClick={() => (menuOpen.value = false)} />}
      <Side />
      <main id="main">
        <Router hook={useHashLocation}>
          <Switch>
            {ROUTES.map(([path, Component]) => (
              <Route key={path} path={path}>
                <Component />
              </Route>
            ))}
            <Route component={Nowhere} />
          </Switch>
        </Router>
      </main>
    </div>
  )
}

// The events follow while a session lasts.
effect(() => {
  if (session.value === 'out') disconnect()
  if (session.value !== 'in') return undefined
  connect()
  return keepSession()
})
watchNetwork()
document.addEventListener('keydown', ({ key }) => {
  if (key === 'Escape') menuOpen.value = false
})
void begin()

export function App() {
  return (
    <>
      {session.value === 'in' && <Frame />}
      {session.value === 'out' && <SignIn />}
      <Questions />
      <Toasts />
    </>
  )
}
