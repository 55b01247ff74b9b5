/** The contract between Sluice and its features: ports, the catalogue, errors and security primitives. Nothing here does I/O. */
export { actionRecord } from './action-record.ts'
export type {
  AdmissionRequest,
  AdmissionStore,
  CountedLimits,
  Exceeded,
  HeldBack,
  LimitCause,
  LimitName,
  Limits,
  LoopState,
  OwnedAdmissionStore,
} from './admission-store.ts'
export { isAllowed, normaliseE164 } from './allow.ts'
export { isAllowedDomain } from './allowed-domain.ts'
export type {
  Approval,
  ApprovalFilter,
  ApprovalGate,
  ApprovalKey,
  ApprovalPrompt,
  ApprovalState,
  ApprovalStore,
  Decision,
  NewApproval,
  OwnedApprovalStore,
} from './approval-store.ts'
export type { Answerer, ApprovalRequest, Approvals, AskedTarget, NewDecision } from './approvals.ts'
export { APPROVAL_MESSAGE_CHARS_MAX } from './approvals.ts'
export { ATTACHMENT_PATH, ATTACHMENTS, namedAttachments } from './attachments.ts'
export { AUDIT_ROOT, auditHash } from './audit-hash.ts'
export type { CatalogueId, CommandHelp, FeatureId, FeatureKind, OwnRow, Profile, Row } from './catalogue.ts'
export { buildHint, CATALOGUE, howToGet, isInProfile, ROWS, rowOf, rowOfFeature } from './catalogue.ts'
export type {
  Address,
  Attachment,
  Button,
  Channel,
  ChannelHealth,
  Deliver,
  Inbound,
  Media,
  Outbound,
  Raw,
  ReplyWindow,
  Sample,
  SampleRequest,
  Sent,
  Verified,
  Webhook,
} from './channel.ts'
export type { ChannelLink, LinkStatus, QrCode } from './channel-link.ts'
export type { ClientId } from './client-id.ts'
export type { ClusterMember, ClusterNode, ClusterRole, ClusterStore, NodeState, ShardClaim } from './cluster-store.ts'
export { CLUSTER_ROLES } from './cluster-store.ts'
export type { BeginningTurn, ClusterNotice, ClusterNotices, ClusterTurns, UnfinishedTurn } from './cluster-turns.ts'
export type { Command, CommandContext } from './command.ts'
export type { Companion, CompanionRequest, StartCompanion } from './companion.ts'
export type { Counters, Lockout, LockoutOptions, RateLimit, RateLimitOptions } from './counters.ts'
export type {
  Arrival,
  DeliveryFilter,
  Discard,
  InboxEntry,
  InboxRow,
  InboxState,
  InboxStore,
  MessageChange,
  MessageKind,
  OutboxRow,
  OutboxState,
  OutboxStore,
  OwnedInboxStore,
  OwnedOutboxStore,
  RefusedMessage,
  RetriedAttempt,
  SessionMessages,
  SpentMessage,
  StartedMessage,
  StartedReply,
  Waiting,
  WaitingMessage,
} from './delivery-store.ts'
export type { ErrorCode, ErrorOptions } from './errors.ts'
export { AppError, ERRORS, errorText } from './errors.ts'
export type { EventFollower, EventLog, LoggedEvent } from './event-log.ts'
export type { EventEnvelope, Events, EventType, FinishReason, SluiceEvent, Usage } from './events.ts'
export { eventMembers, eventSchema, finishReasonSchema } from './events.ts'
export type { Feature, Finding, LinkHealth, Parts, SectionProblem } from './feature.ts'
export { defineFeature, sectionsOfFeature } from './feature.ts'
export { type AnswerFiles, answerFilesIn, fileNote, type UsedFiles, usedFilesIn } from './file-notes.ts'
export type { FileCaller, FileClaim, OwnedPlace } from './file-owner.ts'
export { attachmentPath, fileClaim, fileOwner, fileOwnerOfSession, isFormerAttachment, ownerFolder } from './file-owner.ts'
export { isFresh } from './fresh.ts'
export { GATEWAY_TEXTS, type GatewayText, type GatewayTexts, gatewayText, valuesIn } from './gateway-texts.ts'
export type { DeviceHolder, Hardware, HardwareBoard, HeldPin, RobotStatus } from './hardware.ts'
export type { Bytes, HmacAlgorithm } from './hmac.ts'
export { equalDigests, equalTexts, hmac, hmacSha256, sha256Hex, verifyHmac } from './hmac.ts'
export type {
  Addresses,
  ChipInfo,
  ChipProbe,
  Clock,
  ConfigAddition,
  DeviceRecord,
  Host,
  IssuedToken,
  NativeGpio,
  Pairing,
  PasskeySignIn,
  PinUse,
  PublicRequest,
  ResolvedAddress,
  SecretStore,
  Services,
  SharedGpio,
  Speak,
  SpokenFormat,
  StartTurn,
  Transcribe,
} from './host.ts'
export type { Claim, IdempotencyKey, IdempotencyStore } from './idempotency.ts'
export { isUnloaded, laterFeature, loadFeatures, type SectionDefaults, unloadedDefaults } from './later-feature.ts'
export type { Lease, LeaseName, LeaseStore, ShardRange } from './lease.ts'
export { ALL_SHARDS, channelLease, checkHeld, isLeaseLost, leaseLost, SHARDS, shardsLease, shardsOf } from './lease.ts'
export type { Gap, ListenContext, ListenCursors, ListenReport } from './listen.ts'
export type { LogFields, Logger } from './logger.ts'
export type {
  LanguageModel,
  LoadOptions,
  MediaKind,
  ModelCallOptions,
  ModelFinishReason,
  ModelGenerateResult,
  ModelMessage,
  ModelPrompt,
  ModelStreamPart,
  ModelStreamResult,
  ModelTool,
  ModelUsage,
  OfferedModel,
  Provider,
  ProviderSettings,
  UsualEndpoint,
} from './model.ts'
export { MEDIA_KINDS } from './model.ts'
export { checkFeatures, checkParts } from './name-clashes.ts'
export type { Backlog, Connection, Observation, Observer, Outcome, Span, Vitals } from './observer.ts'
export type { OneTimeKeyOptions, OneTimeKeys, OneTimeKeysOf } from './one-time-keys.ts'
export { runsOnShard, shardOf, shardOfConversation, shardOfSession, shardOfTurn } from './ownership.ts'
export type { Policy, PolicyLevel } from './policy.ts'
export { oneLine, printable, printableLine } from './printable.ts'
export { type GivenHeaders, type RequestParts, rawRequest } from './raw-request.ts'
export type { MarkedFile, NewReply, ReplyExtras, ReplyFile } from './reply.ts'
export { markedFiles, replaceFileMarkers, replyLane } from './reply.ts'
export type { DeletedRows, Retention, StoreUsage } from './retention.ts'
export {
  type ApiCall,
  answerOf,
  type BrowserSession,
  defineRoute,
  type NewBrowserSession,
  ROLES,
  type Role,
  type Route,
  type RouteAuth,
  type RouteRequest,
} from './route.ts'
export type {
  ProcessCommand,
  ProcessPipes,
  RunBare,
  Sandbox,
  SandboxPolicy,
  SandboxProbe,
  Spawn,
  SpawnRequest,
  SpawnResult,
  WrappedCommand,
} from './sandbox.ts'
export { unconfinedNote } from './sandbox.ts'
export { Secret, secretMask, secretValues, withoutSecrets } from './secret.ts'
export type { ConfigSchema, KeyMetadata, Refined, Section } from './section.ts'
export { fromEnv, headerSecret, httpUrl, operatorCommand, secretText, whole } from './section.ts'
export type { ChatSession } from './session-key.ts'
export {
  AGENT_NAME,
  agentKey,
  agentOfSession,
  channelOwner,
  chatSessionKey,
  escapedParts,
  MAIN_AGENT,
  parseAgentKey,
  parseChatSession,
  policyHeader,
} from './session-key.ts'
export type { ConfigVersion, SharedConfig } from './shared-config.ts'
export type { SharedState } from './shared-state.ts'
export type { RowSigner, RowSurvey, SignedRows, UnverifiedRow } from './signed-rows.ts'
export type { FeatureSocket, SocketListener, SocketRequest, SocketRoute } from './socket.ts'
export type {
  FireOptions,
  SopDispatch,
  SopEvent,
  SopGate,
  SopMode,
  SopPriority,
  SopRun,
  SopRunStatus,
  SopStep,
  SopStepResult,
  SopSummary,
  Sops,
  TriggerKind,
  TriggerWebhook,
} from './sop.ts'
export { maySeeRun, mayStartByName, ownerOfRun, SOP_ENDED } from './sop.ts'
export type { AuditKind, AuditRow, NewAudit, OwnedSopStore, SopStart, SopStore } from './sop-store.ts'
export { isAtLeast, lowestStanding, STANDINGS, type Standing } from './standing.ts'
export type {
  Conversation,
  CostSpan,
  DeviceRow,
  DeviceStore,
  Erased,
  KeyValue,
  ListedTurn,
  Memories,
  MemoryEntry,
  MemoryStore,
  NewDevice,
  OwnedStore,
  OwnedTurnStore,
  PeriodCost,
  QueuedTurn,
  ServerCheck,
  SessionRow,
  SessionStore,
  SessionSummary,
  Store,
  StoreChange,
  StoreHealth,
  StoreProblem,
  TurnEnd,
  TurnFilter,
  TurnMessages,
  TurnRow,
  TurnStatus,
  TurnStore,
  WorkStore,
} from './store.ts'
export { SHARED_MEMORIES, sessionKeys, UNOWNED_MEMORIES } from './store.ts'
export type {
  StoreBackend,
  StoreBackendOptions,
  StoreMove,
  StoreMoveOptions,
  StoreMoveProgress,
  StoreRecovered,
  StoreSignOptions,
  StoreToolOptions,
} from './store-backend.ts'
export type { CallingAgent, Decider, Risk, Tool, ToolContext, ToolReport } from './tool.ts'
export { DECIDERS, defineTool, isForOperators } from './tool.ts'
export type { Trace, TraceParent, WithinTrace } from './trace.ts'
export { formatTraceContext, formatTraceparent, parseTraceContext, parseTraceparent } from './trace.ts'
export { typedText } from './typed-text.ts'
export { frameSource, frameUntrusted, UNTRUSTED_RULE, untrustedSource, visibleText, withoutFrames } from './untrusted.ts'
export { sameOrigin } from './url-host.ts'
export { type Proof, type RequestToSign, type SignedRequest, signProof, verifyProof } from './webhook-proof.ts'
export {
  authKey,
  bodyHmac,
  type HmacScheme,
  SENDER_SCHEMES,
  type SenderName,
  type WebhookAuth,
  type WebhookScheme,
} from './webhook-scheme.ts'
export type { AgentWorkspace, FileViewer, KeptBytes, NewAttachment, OpenFile, Workspace, WorkspaceEntry } from './workspace.ts'
