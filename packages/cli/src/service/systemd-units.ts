/** Writes the units of systemd: a service that reports its state, and a socket that keeps the port open while the service restarts. */
import { DRAIN_MS } from '@sluice/daemon/stop-times'
import { isHidden, type Need, SERVICE_NAME, type ServicePlan, SYSTEM_DATA_DIR } from './service-plan.ts'

/** The exit code of a wrong configuration: a restart would not repair it. */
const EXIT_CONFIG = 78
/** The time that systemd waits beyond the drain before it kills the service. */
const STOP_MARGIN_SECS = 20
const STOP_SECS = DRAIN_MS / 1000 + STOP_MARGIN_SECS

export const SERVICE_UNIT = `${SERVICE_NAME}.service`
export const SOCKET_UNIT = `${SERVICE_NAME}.socket`

/** Returns the text of the service unit. */
export function serviceUnit(plan: ServicePlan): string {
  const isSystem = plan.scope === 'system'
  const systemctl = isSystem ? 'systemctl' : 'systemctl --user'
  return unit({
    Unit: [
      'Description=Sluice agent runtime',
      `Requires=${SOCKET_UNIT}`,
      `After=${[SOCKET_UNIT, ...(isSystem ? ['network-online.target'] : [])].join(' ')}`,
      ...(isSystem ? ['Wants=network-online.target'] : []),
      'StartLimitIntervalSec=0',
    ],
    Service: [
      'Type=notify',
      'NotifyAccess=all',
      `ExecStart=${plan.command.map(commandWord).join(' ')}`,
      'ExecReload=/bin/kill -HUP $MAINPID',
      // Only the daemon gets the signal to stop: it lets its commands end, and ends them itself after the drain.
      'KillMode=mixed',
      `TimeoutStopSec=${STOP_SECS}`,
      // An upgrade copies the database before it changes its schema.
      'TimeoutStartSec=900',
      'WatchdogSec=60',
      'Restart=on-failure',
      'RestartSec=2',
      `RestartPreventExitStatus=${EXIT_CONFIG}`,
      // Otherwise, the next connection to the port would start it again.
      `ExecStopPost=${isSystem ? '+' : ''}/bin/sh -c '[ "$$EXIT_STATUS" != ${EXIT_CONFIG} ] || ${systemctl} --no-block stop ${SOCKET_UNIT}'`,
      // A command that needs too much memory must not stop the daemon.
      'OOMPolicy=continue',
      'LimitCORE=0',
      'UMask=0077',
      ...(isSystem ? account(plan) : []),
      ...restrictions(plan),
    ],
    Install: [`WantedBy=${isSystem ? 'multi-user' : 'default'}.target`, `Also=${SOCKET_UNIT}`],
  })
}

/** Returns the text of the socket unit. */
export const socketUnit = ({ host, port }: ServicePlan): string =>
  unit({
    Unit: ['Description=The port of Sluice'],
    Socket: [`ListenStream=${host.includes(':') ? `[${host}]` : host}:${port}`, 'Backlog=1024', 'NoDelay=yes', 'FreeBind=yes'],
    Install: ['WantedBy=sockets.target'],
  })

/** Returns the line for systemd-sysusers that makes the user of the system service. */
export const userLine = (): string => `u ${SERVICE_NAME} - "Sluice agent runtime" ${SYSTEM_DATA_DIR}\n`

function account({ dataDir, groups }: ServicePlan): string[] {
  return [
    `User=${SERVICE_NAME}`,
    ...(groups.length > 0 ? [`SupplementaryGroups=${groups.join(' ')}`] : []),
    ...(dataDir === SYSTEM_DATA_DIR ? [`StateDirectory=${SERVICE_NAME}`, 'StateDirectoryMode=0700'] : []),
    `CacheDirectory=${SERVICE_NAME}`,
    'CacheDirectoryMode=0700',
    'Environment=XDG_CACHE_HOME=/var/cache',
    `Environment=${quoted(`HOME=${dataDir}`)}`,
  ]
}

interface Restriction {
  readonly lines: readonly string[]
  /** True: it changes the view of the file system, which only system services can. */
  readonly isForSystem?: true
  /** The needs that it would make impossible. */
  readonly except?: readonly Need[]
}

/** Each restriction of system calls sets no_new_privs, with which a set-uid sandbox does not start. */
const RESTRICTIONS: readonly Restriction[] = [
  {
    lines: [
      'NoNewPrivileges=yes',
      'LockPersonality=yes',
      'RestrictRealtime=yes',
      'RestrictSUIDSGID=yes',
      'SystemCallArchitectures=native',
      // Netlink lists the addresses of the machine, and brings up the loopback of a sandbox.
      'RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK',
      'SystemCallErrorNumber=EPERM',
      'SystemCallFilter=@system-service @pkey seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self',
    ],
    except: ['setuid'],
  },
  { lines: ['RestrictNamespaces=yes'], except: ['setuid', 'namespaces'] },
  { lines: ['CapabilityBoundingSet=', 'ProtectKernelModules=yes'], isForSystem: true, except: ['setuid'] },
  // A sandbox with namespaces sets a host name of its own. The others cover parts of /proc, and the kernel then gives it no new /proc.
  {
    lines: ['ProtectHostname=yes', 'ProtectKernelTunables=yes', 'ProtectKernelLogs=yes', 'ProtectProc=invisible'],
    isForSystem: true,
    except: ['setuid', 'namespaces'],
  },
  { lines: ['PrivateDevices=yes', 'ProtectClock=yes'], isForSystem: true, except: ['setuid', 'devices'] },
  { lines: ['ProtectSystem=strict', 'ProtectControlGroups=yes', 'RemoveIPC=yes', 'KeyringMode=private'], isForSystem: true },
]

/** Devices of boards, adapters, probes, pins and sound. */
const DEVICES = ['ttyACM', 'ttyUSB', 'ttyAMA', 'ttyS', 'usb_device', 'hidraw', 'gpiochip', 'i2c', 'spi', 'alsa', 'input']

function restrictions({ scope, needs, dataDir, writable }: ServicePlan): string[] {
  const isSystem = scope === 'system'
  const lines = RESTRICTIONS.filter(
    ({ isForSystem, except = [] }) => (isSystem || !isForSystem) && !except.some((need) => needs.has(need)),
  ).flatMap((restriction) => restriction.lines)
  // A sandbox with namespaces mounts its own view of the files and sets its own host name, which other services do not need.
  if (needs.has('namespaces') && !needs.has('setuid')) lines.push('SystemCallFilter=@mount sethostname')
  if (!isSystem) return lines
  const folders = [...(dataDir === SYSTEM_DATA_DIR ? [] : [dataDir]), ...writable]
  if (![dataDir, ...writable].some(isHidden)) lines.push('ProtectHome=yes', 'PrivateTmp=yes')
  if (folders.length > 0) lines.push(`ReadWritePaths=${folders.map((path) => quoted(`-${path}`)).join(' ')}`)
  if (needs.has('devices')) lines.push('DevicePolicy=closed', ...DEVICES.map((name) => `DeviceAllow=char-${name} rw`))
  return lines
}

const unit = (sections: Readonly<Record<string, readonly string[]>>): string =>
  Object.entries(sections)
    .map(([name, lines]) => `[${name}]\n${lines.join('\n')}\n`)
    .join('\n')

/** Quotes a value of a unit, and keeps systemd from replacing `%` in it. */
const quoted = (text: string): string => {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%')
  return /[\s"'\\;]/.test(text) ? `"${escaped}"` : escaped
}

/** Quotes a word of a command line, in which systemd also replaces `$`. */
const commandWord = (text: string): string => quoted(text).replaceAll('$', '$$$$')
