/** The whole page: signing in, the frame around every place, and the places. */
import { effect, signal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Route, Router, Switch } from 'wouter-preact'
import { brokenSince, connect, disconnect, link, watchNetwork } from './data/live.ts'
import { useOverview } from './data/queries.ts'
import { useHashLocation } from './data/router.ts'
import { session } from './data/session.ts'
import { THEMES, theme } from './data/theme.ts'
import { Overview } from './pages/overview.tsx'
import { SignIn, signInByLink, signOut } from './pages/sign-in.tsx'
import { Questions } from './ui/dialog.tsx'
import { Icon, type IconName, Mark } from './ui/icon.tsx'
import { Page, Problem } from './ui/parts.tsx'
import { Toasts } from './ui/toast.tsx'
import { ClockTime } from './ui/values.tsx'

interface Place {
  readonly path: string
  readonly name: string
  readonly icon: IconName
}

const PLACES: readonly (readonly [group: string, places: readonly Place[]])[] = [
  [
    'Work',
    [
      { path: '/', name: 'Overview', icon: 'overview' },
      { path: '/chat', name: 'Chat', icon: 'chat' },
      { path: '/approvals', name: 'Approvals', icon: 'approvals' },
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

const menuOpen = signal(false)

function Side() {
  const [place] = useHashLocation()
  const overview = useOverview()
  const { status } = overview.data ?? {}
  const counts: Readonly<Record<string, number>> = {
    '/approvals': status?.queues.approvals_pending ?? 0,
    '/deliveries': (status?.queues.messages_dead ?? 0) + (status?.queues.replies_dead ?? 0) + (status?.queues.replies_ambiguous ?? 0),
  }
  const isHere = (path: string) =>
    path === '/' ? place === '/' || place === '' : place === path || place.startsWith(`${path}/`) || place.startsWith(`${path}?`)
  return (
    <div class="side">
      <a class="brand" href="#/">
        <Mark /> Sluice
      </a>
      <nav aria-label="Pages">
        {PLACES.map(([group, places]) => (
          <div key={group}>
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
        ))}
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
            <Route path="/" component={Overview} />
            <Route path="/chat/:id?">
              <Chat />
            </Route>
            <Route component={Nowhere} />
          </Switch>
        </Router>
      </main>
    </div>
  )
}

// The events follow while a session lasts.
effect(() => {
  if (session.value === 'in') connect()
  else if (session.value === 'out') disconnect()
})
watchNetwork()
document.addEventListener('keydown', ({ key }) => {
  if (key === 'Escape') menuOpen.value = false
})
void signInByLink()

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
