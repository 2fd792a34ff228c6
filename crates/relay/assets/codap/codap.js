var __create = Object.create;
var __defProp = Object.defineProperty;
var __getOwnPropDesc = Object.getOwnPropertyDescriptor;
var __getOwnPropNames = Object.getOwnPropertyNames;
var __getProtoOf = Object.getPrototypeOf;
var __hasOwnProp = Object.prototype.hasOwnProperty;
var __commonJS = (cb, mod) => function __require() {
  try {
    return mod || (0, cb[__getOwnPropNames(cb)[0]])((mod = { exports: {} }).exports, mod), mod.exports;
  } catch (e) {
    throw mod = 0, e;
  }
};
var __copyProps = (to, from, except, desc) => {
  if (from && typeof from === "object" || typeof from === "function") {
    for (let key of __getOwnPropNames(from))
      if (!__hasOwnProp.call(to, key) && key !== except)
        __defProp(to, key, { get: () => from[key], enumerable: !(desc = __getOwnPropDesc(from, key)) || desc.enumerable });
  }
  return to;
};
var __toESM = (mod, isNodeMode, target) => (target = mod != null ? __create(__getProtoOf(mod)) : {}, __copyProps(
  // If the importer is in node compatibility mode or this is not an ESM
  // file that has been converted to a CommonJS file using a Babel-
  // compatible transform (i.e. "__esModule" has not been set), then set
  // "default" to the CommonJS "module.exports" for node compatibility.
  isNodeMode || !mod || !mod.__esModule ? __defProp(target, "default", { value: mod, enumerable: true }) : target,
  mod
));

// node_modules/iframe-phone/lib/structured-clone.js
var require_structured_clone = __commonJS({
  "node_modules/iframe-phone/lib/structured-clone.js"(exports) {
    var featureSupported = {
      "structuredClones": 0
    };
    (function() {
      var result = 0;
      if (!!window.postMessage) {
        try {
          window.postMessage(document.createElement("a"), "*");
        } catch (e) {
          result = e.DATA_CLONE_ERR || e.message === "Cannot post cyclic structures." ? 1 : 0;
          featureSupported = {
            "structuredClones": result
          };
        }
      }
    })();
    exports.supported = function supported() {
      return featureSupported && featureSupported.structuredClones > 0;
    };
  }
});

// node_modules/iframe-phone/lib/parent-endpoint.js
var require_parent_endpoint = __commonJS({
  "node_modules/iframe-phone/lib/parent-endpoint.js"(exports, module) {
    var structuredClone = require_structured_clone();
    module.exports = function ParentEndpoint(targetWindowOrIframeEl, targetOrigin, afterConnectedCallback) {
      var postMessageQueue = [];
      var connected = false;
      var handlers2 = {};
      var targetWindowIsIframeElement;
      function getIframeOrigin(iframe) {
        return iframe.src.match(/(.*?\/\/.*?)\//)[1];
      }
      function post(type, content) {
        var message;
        if (arguments.length === 1 && typeof type === "object" && typeof type.type === "string") {
          message = type;
        } else {
          message = {
            type,
            content
          };
        }
        if (connected) {
          var tWindow = getTargetWindow();
          if (structuredClone.supported()) {
            tWindow.postMessage(message, targetOrigin);
          } else {
            tWindow.postMessage(JSON.stringify(message), targetOrigin);
          }
        } else {
          postMessageQueue.push(message);
        }
      }
      function addListener(messageName, func) {
        handlers2[messageName] = func;
      }
      function removeListener(messageName) {
        delete handlers2[messageName];
      }
      function removeAllListeners() {
        handlers2 = {};
      }
      function getTargetWindow() {
        if (targetWindowIsIframeElement) {
          var tWindow = targetWindowOrIframeEl.contentWindow;
          if (!tWindow) {
            throw "IFrame element needs to be added to DOM before communication can be started (.contentWindow is not available)";
          }
          return tWindow;
        }
        return targetWindowOrIframeEl;
      }
      function receiveMessage(message) {
        var messageData;
        if (message.source === getTargetWindow() && (targetOrigin === "*" || message.origin === targetOrigin)) {
          messageData = message.data;
          if (typeof messageData === "string") {
            try {
              messageData = JSON.parse(messageData);
            } catch (e) {
              console.warn("iframe-phone: ParentEndpoint ignoring non-JSON message:", messageData);
              return;
            }
          }
          if (handlers2[messageData.type]) {
            handlers2[messageData.type](messageData.content);
          } else {
            console.warn("iframe-phone: ParentEndpoint ignoring unrecognized message type:", messageData.type);
          }
        }
      }
      function disconnect() {
        connected = false;
        removeAllListeners();
        window.removeEventListener("message", receiveMessage);
      }
      try {
        targetWindowIsIframeElement = targetWindowOrIframeEl.constructor === HTMLIFrameElement;
      } catch (e) {
        targetWindowIsIframeElement = false;
      }
      if (targetWindowIsIframeElement) {
        if (!targetOrigin || targetOrigin.constructor === Function) {
          afterConnectedCallback = targetOrigin;
          targetOrigin = getIframeOrigin(targetWindowOrIframeEl);
        }
      }
      if (targetOrigin === "file://") {
        targetOrigin = "*";
      }
      addListener("hello", function() {
        connected = true;
        post({
          type: "hello",
          // `origin` property isn't used by IframeEndpoint anymore (>= 1.2.0), but it's being sent to be
          // backward compatible with old IframeEndpoint versions (< v1.2.0).
          origin: window.location.href.match(/(.*?\/\/.*?)\//)[1]
        });
        if (afterConnectedCallback && typeof afterConnectedCallback === "function") {
          afterConnectedCallback();
        }
        while (postMessageQueue.length > 0) {
          post(postMessageQueue.shift());
        }
      });
      window.addEventListener("message", receiveMessage, false);
      return {
        post,
        addListener,
        removeListener,
        removeAllListeners,
        disconnect,
        getTargetWindow,
        targetOrigin
      };
    };
  }
});

// node_modules/iframe-phone/lib/iframe-endpoint.js
var require_iframe_endpoint = __commonJS({
  "node_modules/iframe-phone/lib/iframe-endpoint.js"(exports, module) {
    var structuredClone = require_structured_clone();
    var HELLO_INTERVAL_LENGTH = 200;
    var HELLO_TIMEOUT_LENGTH = 6e4;
    function IFrameEndpoint() {
      var listeners = {};
      var isInitialized = false;
      var connected = false;
      var postMessageQueue = [];
      var helloInterval;
      function postToParent(message) {
        if (structuredClone.supported()) {
          window.parent.postMessage(message, "*");
        } else {
          window.parent.postMessage(JSON.stringify(message), "*");
        }
      }
      function post(type, content) {
        var message;
        if (arguments.length === 1 && typeof type === "object" && typeof type.type === "string") {
          message = type;
        } else {
          message = {
            type,
            content
          };
        }
        if (connected) {
          postToParent(message);
        } else {
          postMessageQueue.push(message);
        }
      }
      function postHello() {
        postToParent({
          type: "hello"
        });
      }
      function addListener(type, fn) {
        listeners[type] = fn;
      }
      function removeListener(type) {
        delete listeners[type];
      }
      function removeAllListeners() {
        listeners = {};
      }
      function getListenerNames() {
        return Object.keys(listeners);
      }
      function messageListener(message) {
        if (message.source !== window.parent) return;
        var messageData = message.data;
        if (typeof messageData === "string") {
          try {
            messageData = JSON.parse(messageData);
          } catch (e) {
            console.warn("iframe-phone: IFrameEndpoint ignoring non-JSON message:", messageData);
            return;
          }
        }
        if (!connected && messageData.type === "hello") {
          connected = true;
          stopPostingHello();
          while (postMessageQueue.length > 0) {
            post(postMessageQueue.shift());
          }
        }
        if (connected && listeners[messageData.type]) {
          listeners[messageData.type](messageData.content);
        }
      }
      function disconnect() {
        connected = false;
        stopPostingHello();
        removeAllListeners();
        window.removeEventListener("message", messageListener);
      }
      function initialize2() {
        if (isInitialized) {
          return;
        }
        isInitialized = true;
        if (window.parent === window) return;
        startPostingHello();
        window.addEventListener("message", messageListener, false);
      }
      function startPostingHello() {
        if (helloInterval) {
          stopPostingHello();
        }
        helloInterval = window.setInterval(postHello, HELLO_INTERVAL_LENGTH);
        window.setTimeout(stopPostingHello, HELLO_TIMEOUT_LENGTH);
        postHello();
      }
      function stopPostingHello() {
        window.clearInterval(helloInterval);
        helloInterval = null;
      }
      return {
        initialize: initialize2,
        getListenerNames,
        addListener,
        removeListener,
        removeAllListeners,
        disconnect,
        post
      };
    }
    var instance = null;
    module.exports = function getIFrameEndpoint() {
      if (!instance) {
        instance = new IFrameEndpoint();
      }
      return instance;
    };
  }
});

// node_modules/iframe-phone/lib/iframe-phone-rpc-endpoint.js
var require_iframe_phone_rpc_endpoint = __commonJS({
  "node_modules/iframe-phone/lib/iframe-phone-rpc-endpoint.js"(exports, module) {
    var ParentEndpoint = require_parent_endpoint();
    var getIFrameEndpoint = require_iframe_endpoint();
    function getPseudoUUID() {
      var chars = "abcdefghijklmnopqrstuvwxyz0123456789";
      var len = chars.length;
      var ret = [];
      for (var i = 0; i < 10; i++) {
        ret.push(chars[Math.floor(Math.random() * len)]);
      }
      return ret.join("");
    }
    module.exports = function IframePhoneRpcEndpoint(handler2, namespace, targetWindow, targetOrigin, phone) {
      var pendingCallbacks = /* @__PURE__ */ Object.create({});
      if (handler2 && typeof handler2 === "object") {
        namespace = handler2.namespace;
        targetWindow = handler2.targetWindow;
        targetOrigin = handler2.targetOrigin;
        phone = handler2.phone;
        handler2 = handler2.handler;
      }
      if (!phone) {
        if (targetWindow === window.parent) {
          phone = getIFrameEndpoint();
          phone.initialize();
        } else {
          phone = new ParentEndpoint(targetWindow, targetOrigin);
        }
      }
      phone.addListener(namespace, function(message) {
        var callbackObj;
        if (message.messageType === "call" && typeof this.handler === "function") {
          this.handler.call(void 0, message.value, function(returnValue) {
            phone.post(namespace, {
              messageType: "returnValue",
              uuid: message.uuid,
              value: returnValue
            });
          });
        } else if (message.messageType === "returnValue") {
          callbackObj = pendingCallbacks[message.uuid];
          if (callbackObj) {
            window.clearTimeout(callbackObj.timeout);
            if (callbackObj.callback) {
              callbackObj.callback.call(void 0, message.value);
            }
            pendingCallbacks[message.uuid] = null;
          }
        }
      }.bind(this));
      function call(message, callback) {
        var uuid = getPseudoUUID();
        pendingCallbacks[uuid] = {
          callback,
          timeout: window.setTimeout(function() {
            if (callback) {
              callback(void 0, new Error("IframePhone timed out waiting for reply"));
            }
          }, 2e3)
        };
        phone.post(namespace, {
          messageType: "call",
          uuid,
          value: message
        });
      }
      function disconnect() {
        phone.disconnect();
      }
      this.handler = handler2;
      this.call = call.bind(this);
      this.disconnect = disconnect.bind(this);
    };
  }
});

// node_modules/iframe-phone/main.js
var require_main = __commonJS({
  "node_modules/iframe-phone/main.js"(exports, module) {
    var iframePhone = {
      /**
       * Allows communication with an iframe.
       */
      ParentEndpoint: require_parent_endpoint(),
      /**
       * Allows communication with a parent page.
       * IFrameEndpoint is a singleton, as iframe can't have multiple parents anyway.
       */
      getIFrameEndpoint: require_iframe_endpoint(),
      structuredClone: require_structured_clone(),
      IframePhoneRpcEndpoint: require_iframe_phone_rpc_endpoint()
    };
    module.exports = iframePhone;
  }
});

// node_modules/@concord-consortium/codap-plugin-api/codap-plugin-api.js
var require_codap_plugin_api = __commonJS({
  "node_modules/@concord-consortium/codap-plugin-api/codap-plugin-api.js"(exports) {
    "use strict";
    var iframePhone = require_main();
    var connection = null;
    var connectionState = "preinit";
    var kDefaultRequestTimeout = 6e4;
    var kMaxRequestTimeout = 2 ** 31 - 1;
    var kMaxDescribedMessage = 500;
    var requestTimeout = kDefaultRequestTimeout;
    var stats = {
      /**
       * How many requests the caller issued.
       *
       * Counted when `sendRequest` is called, not when the request reaches CODAP, so a request refused
       * before it could be sent — no connection, or a closed one — is included. That is what makes the
       * arithmetic on `countDiReqFailed` below hold; counting only the ones that got as far as CODAP
       * left the refusals incrementing a failure count against a total that had not moved.
       */
      countDiReq: 0,
      /** How many requests CODAP answered with `{success: true}`. */
      countDiRplSuccess: 0,
      /**
       * How many requests CODAP answered with `{success: false}` — that is, answered and declined.
       * These are outcomes, not failures: the request's promise resolves with the response. For
       * requests that failed, see `countDiReqFailed`.
       */
      countDiRplFail: 0,
      /**
       * How many requests failed, and so rejected: no connection to send on, no answer within the
       * deadline, an answer carrying no result, the send itself throwing, or — for `init()`'s handshake
       * alone — nothing answering within iframe-phone's advisory window.
       *
       * `countDiReq - countDiRplSuccess - countDiRplFail - countDiReqFailed` is the number still in
       * flight. `countDiReqDeadlineExceeded` counts the subset that ran out of time.
       */
      countDiReqFailed: 0,
      /**
       * How many times iframe-phone's advisory 2s timer has reported that no reply has arrived yet.
       *
       * This counts probes, not failures. A request slower than 2s that goes on to succeed normally
       * increments it, so on a plugin doing bulk work a high count is expected and says nothing is
       * wrong. For requests that actually ran out of time, see `countDiReqDeadlineExceeded`.
       */
      countDiRplTimeout: 0,
      /**
       * How many requests were rejected for exceeding their deadline. See `setRequestTimeout`. A subset
       * of `countDiReqFailed`.
       */
      countDiReqDeadlineExceeded: 0,
      countCodapReq: 0,
      countCodapUnhandledReq: 0,
      countCodapRplSuccess: 0,
      countCodapRplFail: 0,
      timeDiFirstReq: null,
      timeDiLastReq: null,
      timeCodapFirstReq: null,
      timeCodapLastReq: null
    };
    var config = null;
    var interactiveState = {};
    var notificationSubscribers = [];
    var interactiveStateHandlerRegistered = false;
    function matchResource(resourceName, resourceSpec) {
      return resourceSpec === "*" || resourceName === resourceSpec;
    }
    function notificationHandler(request, callback) {
      const action = request.action;
      const resource = request.resource;
      let requestValues = request.values;
      let returnMessage = { success: true };
      markConnectionActive();
      stats.countCodapReq += 1;
      stats.timeCodapLastReq = /* @__PURE__ */ new Date();
      if (!stats.timeCodapFirstReq) {
        stats.timeCodapFirstReq = stats.timeCodapLastReq;
      }
      if (action === "notify" && !Array.isArray(requestValues)) {
        requestValues = [requestValues];
      }
      let handled = false;
      let success = true;
      if (action === "get" || action === "update") {
        notificationSubscribers.some(function(subscription) {
          let result = false;
          try {
            if (subscription.actionSpec === action && matchResource(resource, subscription.resourceSpec)) {
              const rtn = subscription.handler(request);
              if (rtn === null || rtn === void 0 ? void 0 : rtn.success) {
                stats.countCodapRplSuccess++;
              } else {
                stats.countCodapRplFail++;
              }
              returnMessage = rtn;
              result = true;
            }
          } catch (ex) {
            result = true;
          }
          return result;
        });
        if (!handled) {
          stats.countCodapUnhandledReq++;
        }
      } else if (action === "notify") {
        requestValues.forEach(function(value) {
          notificationSubscribers.forEach(function(subscription) {
            handled = false;
            if (subscription.actionSpec === action && matchResource(resource, subscription.resourceSpec) && (!subscription.operation || subscription.operation === value.operation && subscription.handler)) {
              const rtn = subscription.handler({ action, resource, values: value });
              if (rtn === null || rtn === void 0 ? void 0 : rtn.success) {
                stats.countCodapRplSuccess++;
              } else {
                stats.countCodapRplFail++;
              }
              success = success && (rtn ? rtn.success : false);
              handled = true;
            }
          });
          if (!handled) {
            stats.countCodapUnhandledReq++;
          }
        });
      } else ;
      return callback(returnMessage);
    }
    function reportCallbackError(error) {
      queueMicrotask(() => {
        throw error;
      });
    }
    function describeMessage(message) {
      var _a;
      let described;
      try {
        described = (_a = JSON.stringify(message)) !== null && _a !== void 0 ? _a : String(message);
      } catch (_b) {
        return "[message could not be serialized]";
      }
      return described.length > kMaxDescribedMessage ? described.slice(0, kMaxDescribedMessage) + "… (truncated)" : described;
    }
    function afterHandshake(step, state) {
      if (!step) {
        return;
      }
      try {
        const result = step(state);
        if (result && typeof result.then === "function") {
          result.then(void 0, reportCallbackError);
        }
      } catch (error) {
        reportCallbackError(error);
      }
    }
    function markConnectionActive() {
      if (connection) {
        connectionState = "active";
      }
    }
    function issueRequest(message, options = {}) {
      const { callback, onSilence } = options;
      return new Promise(function(resolve, reject) {
        let isSettled = false;
        let timeoutTimer;
        function settle(settleFn, value, callbackResponse) {
          if (isSettled) {
            return;
          }
          isSettled = true;
          if (timeoutTimer !== void 0) {
            clearTimeout(timeoutTimer);
          }
          settleFn(value);
          if (callback) {
            try {
              const notify = callback;
              const callbackResult = notify(callbackResponse, message);
              if (callbackResult && typeof callbackResult.then === "function") {
                callbackResult.then(void 0, reportCallbackError);
              }
            } catch (error) {
              reportCallbackError(error);
            }
          }
        }
        function settleSuccess(response) {
          settle(resolve, response, response);
        }
        function settleFailure(reason) {
          if (!isSettled) {
            stats.countDiReqFailed++;
          }
          settle(reject, reason instanceof Error ? reason : new Error(String(reason)));
        }
        function handleResponse(response, noReplyYet) {
          if (!noReplyYet) {
            markConnectionActive();
          }
          if (isSettled) {
            return;
          }
          if (response === void 0 || response === null) {
            if (noReplyYet) {
              stats.countDiRplTimeout++;
              if (onSilence) {
                try {
                  onSilence();
                } catch (error) {
                  reportCallbackError(error);
                }
                settleFailure("handleResponse: CODAP request timed out: " + describeMessage(message));
              }
              return;
            }
            settleFailure("handleResponse: CODAP answered with no result: " + describeMessage(message));
            return;
          }
          const succeeded = Array.isArray(response) ? response.length > 0 && response.every((result) => result === null || result === void 0 ? void 0 : result.success) : response.success;
          if (succeeded) {
            stats.countDiRplSuccess++;
          } else {
            stats.countDiRplFail++;
          }
          settleSuccess(response);
        }
        stats.countDiReq++;
        stats.timeDiLastReq = /* @__PURE__ */ new Date();
        if (!stats.timeDiFirstReq) {
          stats.timeDiFirstReq = stats.timeDiLastReq;
        }
        switch (connectionState) {
          case "closed":
            settleFailure("sendRequest on closed CODAP connection: " + describeMessage(message));
            break;
          case "preinit":
          // warn, but issue request.
          // console.log('sendRequest on not yet initialized CODAP connection: ' +
          // JSON.stringify(message));
          /* falls through */
          default:
            if (connection) {
              try {
                connection.call(message, handleResponse);
                const timeout = requestTimeout;
                if (!isSettled) {
                  timeoutTimer = setTimeout(function() {
                    if (isSettled) {
                      return;
                    }
                    stats.countDiReqDeadlineExceeded++;
                    settleFailure("sendRequest: CODAP request exceeded " + timeout + "ms: " + describeMessage(message));
                  }, timeout);
                }
              } catch (error) {
                settleFailure(error);
              }
            } else {
              settleFailure("sendRequest on non-existent CODAP connection: " + describeMessage(message));
            }
        }
      });
    }
    var codapInterface2 = {
      /**
       * Connection statistics
       */
      stats,
      /**
       * Initialize connection.
       *
       * Start connection. Request interactiveFrame to get prior state, if any.
       * Update interactive frame to set name and dimensions and other configuration
       * information.
       *
       * Resolves with the interactive state CODAP had saved for this plugin, or rejects with an `Error`
       * if the handshake does not succeed. The callback is invoked either way, as `sendRequest`'s is:
       * with the saved state on success, and with `undefined` on failure.
       *
       * **When nothing answers the handshake the connection is marked closed**, so requests issued
       * afterwards are refused at once rather than each waiting out `getRequestTimeout()`. The trigger is
       * iframe-phone's own 2 second advisory window, which is not proof that CODAP is absent: a CODAP
       * that is alive but slow to complete the underlying "hello" exchange looks the same from here.
       * That guess is not final, though — if CODAP answers after all, the connection reopens by itself
       * and requests resume.
       *
       * The reopen recovers the connection, not the handshake: this promise stays rejected, and the saved
       * state that late reply carried is **not** delivered, so `getInteractiveState()` is still empty. A
       * plugin that restores state should call `init()` again rather than rely on the reopen — otherwise
       * it will answer CODAP's next request for its state with nothing, overwriting what was stored.
       *
       * Any other failure leaves the connection usable and fails only the handshake, since none of them
       * says anything about whether CODAP is there: CODAP answering and declining, CODAP answering with
       * no value, and the request failing to send are all in this group. So is a handshake that goes
       * silent after CODAP has already answered something else.
       *
       * @param iConfig {object} Configuration. Optional properties: title {string},
       *                        version {string}, dimensions {object}
       *
       * @param iCallback {function(interactiveState)} Optional. Receives the saved state, or `undefined`
       *                        if the handshake failed.
       * @return {Promise} Promise of interactiveState;
       */
      init(iConfig, iCallback) {
        const this_ = this;
        return new Promise(function(resolve, reject) {
          function rejectHandshake(reason) {
            reject(reason instanceof Error ? reason : new Error(String(reason)));
            afterHandshake(iCallback, void 0);
          }
          function closeSilentConnection() {
            if (connection === endpoint && connectionState !== "active") {
              connectionState = "closed";
            }
          }
          function getFrameRespHandler(resp) {
            const success = resp && resp[1] && resp[1].success;
            const receivedFrame = success && resp[1].values;
            const savedState = receivedFrame && receivedFrame.savedState;
            if (!connection) {
              rejectHandshake("init: the connection was destroyed before the handshake completed");
              return;
            }
            if (success) {
              resolve(savedState);
              afterHandshake((state) => this_.updateInteractiveState(state), savedState);
              afterHandshake(iConfig.stateHandler, savedState);
              afterHandshake(iCallback, savedState);
            } else {
              rejectHandshake(resp[1] && resp[1].values && resp[1].values.error || "unknown failure");
            }
          }
          const getFrameReq = { action: "get", resource: "interactiveFrame" };
          const newFrame = {
            name: iConfig.name,
            title: iConfig.title,
            version: iConfig.version,
            dimensions: iConfig.dimensions,
            preventBringToFront: iConfig.preventBringToFront,
            preventDataContextReorg: iConfig.preventDataContextReorg
          };
          const updateFrameReq = {
            action: "update",
            resource: "interactiveFrame",
            values: newFrame
          };
          config = iConfig;
          const endpoint = new iframePhone.IframePhoneRpcEndpoint(notificationHandler, "data-interactive", window.parent);
          connection = endpoint;
          connectionState = "preinit";
          if (!config.customInteractiveStateHandler && !interactiveStateHandlerRegistered) {
            this_.on("get", "interactiveState", function() {
              return { success: true, values: this_.getInteractiveState() };
            }.bind(this_));
            interactiveStateHandlerRegistered = true;
          }
          return issueRequest([updateFrameReq, getFrameReq], { onSilence: closeSilentConnection }).then(getFrameRespHandler, rejectHandshake);
        }.bind(this));
      },
      /**
       * Current known state of the connection. One of three values:
       *
       * - `"preinit"` — no handshake has completed yet, either before the first `init()` or during one.
       * - `"active"` — CODAP has been heard from: it answered a request, or sent a notification.
       * - `"closed"` — requests are refused without being sent. Two causes, which behave differently:
       *   `destroy()`, which is final until `init()` is called again; and a handshake that nothing
       *   answered, which reverts to `"active"` by itself if CODAP answers after all.
       *
       * This is the only way to observe either of those, since neither raises an event.
       *
       * @returns {'preinit' | 'active' | 'closed'}
       */
      getConnectionState() {
        return connectionState;
      },
      /**
       * How long, in milliseconds, a request waits for a CODAP response before it is rejected.
       * Defaults to 60000. Raise it for plugins that issue requests over very large datasets; lower it
       * if a caller needs to fail fast.
       *
       * This is deliberately much longer than the 2s timer inside iframe-phone, which reports that no
       * reply has arrived yet without cancelling the request — a large request routinely takes longer
       * than that and still succeeds.
       */
      getRequestTimeout() {
        return requestTimeout;
      },
      /**
       * Sets how long, in milliseconds, a request waits for a CODAP response before it is rejected.
       * Applies to requests issued after the call; requests already in flight keep the value they
       * were given.
       *
       * A non-finite or non-positive value falls back to the default of 60000, and larger values are
       * clamped: setTimeout treats NaN and negative delays as 0 and overflows above its 32-bit
       * ceiling, either of which would silently make every subsequent request fail at once.
       */
      setRequestTimeout(timeout) {
        requestTimeout = Number.isFinite(timeout) && timeout > 0 ? Math.min(timeout, kMaxRequestTimeout) : kDefaultRequestTimeout;
      },
      getStats() {
        return stats;
      },
      getConfig() {
        return config;
      },
      /**
       * Returns the interactive state.
       *
       * @returns {object}
       */
      getInteractiveState() {
        return interactiveState;
      },
      /**
       * Updates the interactive state.
       * @param iInteractiveState {Object}
       */
      updateInteractiveState(iInteractiveState) {
        if (!iInteractiveState) {
          return;
        }
        interactiveState = Object.assign(interactiveState, iInteractiveState);
      },
      /**
       * Tears down the connection to CODAP. Requests issued afterwards are refused rather than sent;
       * `init()` can be called again to reconnect.
       */
      destroy() {
        connection = null;
        connectionState = "closed";
      },
      /**
       * Sends a request to CODAP. The format of the message is as defined in
       * {@link https://github.com/concord-consortium/codap/wiki/CODAP-Data-Interactive-API}.
       *
       * A request waits up to `getRequestTimeout()` milliseconds (60 seconds by default) for CODAP to
       * answer. It settles exactly once, and both the promise and the callback report every outcome:
       *
       * - **CODAP answered:** the promise resolves with the response and the callback receives it. That
       *   includes `{success: false}`, which means CODAP answered and declined — a resolved promise, not
       *   a rejected one.
       * - **The request failed:** the promise rejects with an `Error` and the callback is invoked with
       *   `undefined`. Every way a request can fail reports this way — exceeding the deadline, there
       *   being no connection to send on (before `initializePlugin()` or after `destroy()`), CODAP
       *   answering with no value at all, and the send itself throwing.
       *
       * The callback is invoked exactly once, synchronously after the promise is resolved or rejected —
       * that is, before any `.then` or `await` continuation runs, since those are microtasks. A callback
       * written as `result.success` therefore has to handle the `undefined` it receives on failure. Note that the
       * promise rejects whether or not a callback is passed, so it still needs a `.catch` to avoid an
       * unhandled rejection. An exception thrown by the callback itself is rethrown as an uncaught error
       * rather than failing the request, which has already settled by then.
       *
       * @param message {Object} The request, as in the Data Interactive API.
       * @param callback {RequestCallback} Optional. Receives the response, or `undefined` if the request
       *    failed, followed by the original request. Its parameter has to admit `undefined`: a callback
       *    typed for the response alone does not compile, because it is the one that throws when a
       *    request fails.
       *
       * @return {Promise} The promise of the response from CODAP.
       */
      sendRequest(message, callback) {
        return issueRequest(message, { callback });
      },
      /**
       * Registers a handler to respond to CODAP-initiated requests and
       * notifications. See {@link https://github.com/concord-consortium/codap/wiki/CODAP-Data-Interactive-API#codap-initiated-actions}
       *
       * @param actionSpec {'get' || 'notify'} (optional) Action to handle. Defaults to 'notify'.
       * @param resourceSpec {String} A resource string.
       * @param operation {String} (optional) name of operation, e.g. 'create', 'delete',
       *   'move', 'resize', .... If not specified, all operations will be reported.
       * @param handler {Function} A handler to receive the notifications.
       */
      on(actionSpec, resourceSpec, operation, handler2) {
        let as = "notify", rs, os, hn;
        const args = Array.prototype.slice.call(arguments);
        if (["get", "update", "notify"].indexOf(args[0]) >= 0) {
          as = args.shift();
        }
        rs = args.shift();
        if (typeof args[0] !== "function") {
          os = args.shift();
        }
        hn = args.shift();
        const subscriber = {
          actionSpec: as,
          resourceSpec: rs,
          operation: os,
          handler: hn
        };
        notificationSubscribers.push(subscriber);
      },
      /**
       * Parses a resource selector returning a hash of named resource names to
       * resource values. The last clause is identified as the resource type.
       * E.g. converts 'dataContext[abc].collection[def].case'
       * to {dataContext: 'abc', collection: 'def', type: 'case'}
       *
       * @param {String} iResource
       * @return {Object}
       */
      parseResourceSelector(iResource) {
        const selectorRE = /([A-Za-z0-9_-]+)\[([^\]]+)]/;
        const result = {};
        const selectors = iResource.split(".");
        selectors.forEach(function(selector) {
          let resourceType, resourceName;
          const match = selectorRE.exec(selector);
          if (selectorRE.test(selector) && match) {
            resourceType = match[1];
            resourceName = match[2];
            result[resourceType] = resourceName;
            result.type = resourceType;
          } else {
            result.type = selector;
          }
        });
        return result;
      }
    };
    var ctxStr = (contextName) => `dataContext[${contextName}]`;
    var collStr = (collectionName) => `collection[${collectionName}]`;
    var createMessage = (action, resource, values) => {
      return {
        action,
        resource,
        values
      };
    };
    var sendMessage = async (action, resource, values) => {
      const message = createMessage(action, resource, values);
      return await codapInterface2.sendRequest(message);
    };
    var reportRequestFailure = (what, error) => {
      console.warn(what, error !== null && error !== void 0 ? error : "");
    };
    var initializePlugin2 = async (options) => {
      const { pluginName, version, dimensions: dimensions2 } = options;
      const interfaceConfig = {
        name: pluginName,
        version,
        dimensions: dimensions2
      };
      return await codapInterface2.init(interfaceConfig);
    };
    var createTable = async (dataContext, datasetName) => {
      const values = {
        type: "caseTable",
        dataContext
      };
      if (datasetName) {
        values.name = datasetName;
      }
      return sendMessage("create", "component", values);
    };
    var selectSelf = () => {
      const selectComponent = async function(id2) {
        return codapInterface2.sendRequest({
          action: "notify",
          resource: `component[${id2}]`,
          values: { request: "select" }
        }, (result) => {
          if (result && !result.success) {
            reportRequestFailure("selectSelf: CODAP declined to select the component");
          }
        }).catch((error) => reportRequestFailure("selectSelf: the select request failed", error));
      };
      codapInterface2.sendRequest({ action: "get", resource: "interactiveFrame" }, (result) => {
        var _a;
        if (!result) {
          return;
        }
        if (!result.success) {
          reportRequestFailure("selectSelf: CODAP declined the interactiveFrame lookup");
          return;
        }
        if (((_a = result.values) === null || _a === void 0 ? void 0 : _a.id) === void 0) {
          reportRequestFailure("selectSelf: the interactiveFrame reply carried no id");
          return;
        }
        return selectComponent(result.values.id);
      }).catch((error) => reportRequestFailure("selectSelf: the interactiveFrame lookup failed", error));
    };
    var addComponentListener = (callback) => {
      codapInterface2.on("notify", "component", callback);
    };
    var getListOfDataContexts = () => {
      return sendMessage("get", "dataContextList");
    };
    var getDataContext = (dataContextName) => {
      return sendMessage("get", ctxStr(dataContextName));
    };
    var createDataContext = (dataContextName) => {
      return sendMessage("create", "dataContext", { name: dataContextName });
    };
    var createDataContextFromURL = (url) => {
      return sendMessage("create", "dataContextFromURL", { "URL": url });
    };
    var addDataContextsListListener = (callback) => {
      codapInterface2.on("notify", "documentChangeNotice", callback);
    };
    var addDataContextChangeListener = (dataContextName, callback) => {
      codapInterface2.on("notify", `dataContextChangeNotice[${dataContextName}]`, callback);
    };
    var getCollectionList = (dataContextName) => {
      return sendMessage("get", `${ctxStr(dataContextName)}.collectionList`);
    };
    var getCollection = (dataContextName, collectionName) => {
      return sendMessage("get", `${ctxStr(dataContextName)}.${collStr(collectionName)}`);
    };
    var createParentCollection = (dataContextName, collectionName, attrs) => {
      const resource = `${ctxStr(dataContextName)}.collection`;
      const values = {
        "name": collectionName,
        "title": collectionName,
        "parent": "_root_"
      };
      if (attrs) {
        values.attrs = attrs;
      }
      return sendMessage("create", resource, values);
    };
    var createChildCollection = (dataContextName, collectionName, parentCollectionName, attrs) => {
      const resource = `${ctxStr(dataContextName)}.collection`;
      const values = {
        "name": collectionName,
        "title": collectionName,
        "parent": parentCollectionName
      };
      if (attrs) {
        values.attrs = attrs;
      }
      return sendMessage("create", resource, values);
    };
    var createNewCollection = (dataContextName, collectionName, attrs) => {
      const resource = `${ctxStr(dataContextName)}.collection`;
      const values = {
        "name": collectionName,
        "title": collectionName
      };
      if (attrs) {
        values.attrs = attrs;
      }
      return sendMessage("create", resource, values);
    };
    var ensureUniqueCollectionName = async (dataContextName, collectionName, index) => {
      index = index || 0;
      if (index > 100) {
        return void 0;
      }
      const uniqueName = `${collectionName}${index !== 0 ? index : ""}`;
      const getCollMessage = {
        "action": "get",
        "resource": `${ctxStr(dataContextName)}.collection[${uniqueName}]`
      };
      const result = await codapInterface2.sendRequest(getCollMessage);
      if (result.success) {
        return ensureUniqueCollectionName(dataContextName, collectionName, index + 1);
      } else {
        return uniqueName;
      }
    };
    var getAttribute = (dataContextName, collectionName, attributeName2) => {
      const resource = `${ctxStr(dataContextName)}.${collStr(collectionName)}.attribute[${attributeName2}]`;
      return sendMessage("get", resource);
    };
    var getAttributeList = (dataContextName, collectionName) => {
      const resource = `${ctxStr(dataContextName)}.${collStr(collectionName)}.attributeList`;
      return sendMessage("get", resource);
    };
    var createNewAttribute = (dataContextName, collectionName, attributeName2) => {
      const resource = `${ctxStr(dataContextName)}.${collStr(collectionName)}.attribute`;
      const values = {
        "name": attributeName2,
        "title": attributeName2
      };
      return sendMessage("create", resource, values);
    };
    var updateAttribute = (dataContextName, collectionName, attributeName2, attribute2, values) => {
      const resource = `${ctxStr(dataContextName)}.${collStr(collectionName)}.attribute[${attributeName2}]`;
      return sendMessage("update", resource, values);
    };
    var updateAttributePosition = (dataContextName, collectionName, attrName, newPosition2) => {
      const resource = `${ctxStr(dataContextName)}.${collStr(collectionName)}.attributeLocation[${attrName}]`;
      return sendMessage("update", resource, {
        "collection": collectionName,
        "position": newPosition2
      });
    };
    var createCollectionFromAttribute = async (dataContextName, oldCollectionName, attr, parent) => {
      var _a, _b;
      const getCollectionMessage = createMessage("get", `${ctxStr(dataContextName)}.${collStr(attr.name)}`);
      const existingCollection = await codapInterface2.sendRequest(getCollectionMessage);
      const moveCollection = existingCollection.success && (((_b = (_a = existingCollection.values) === null || _a === void 0 ? void 0 : _a.attrs) === null || _b === void 0 ? void 0 : _b.length) === 1 || attr.name === oldCollectionName);
      const newCollectionName = moveCollection ? await ensureUniqueCollectionName(dataContextName, attr.name, 0) : attr.name;
      if (newCollectionName === void 0) {
        return {
          success: false,
          values: { error: `createCollectionFromAttribute: no unused collection name based on "${attr.name}"` }
        };
      }
      const _parent = parent === "root" ? "_root_" : parent;
      const createCollectionRequest = createMessage("create", `${ctxStr(dataContextName)}.collection`, {
        "name": newCollectionName,
        "title": newCollectionName,
        parent: _parent
      });
      const createCollectionResult = await codapInterface2.sendRequest(createCollectionRequest);
      if (!createCollectionResult.success) {
        return createCollectionResult;
      }
      const moveAttributeRequest = createMessage("update", `${ctxStr(dataContextName)}.${collStr(oldCollectionName)}.attributeLocation[${attr.name}]`, {
        "collection": newCollectionName,
        "position": 0
      });
      return await codapInterface2.sendRequest(moveAttributeRequest);
    };
    var getCaseCount = (dataContextName, collectionName) => {
      const resource = `${ctxStr(dataContextName)}.${collStr(collectionName)}.caseCount`;
      return sendMessage("get", resource);
    };
    var getCaseByIndex = (dataContextName, collectionName, index) => {
      const resource = `${ctxStr(dataContextName)}.${collStr(collectionName)}.caseByIndex[${index}]`;
      return sendMessage("get", resource);
    };
    var getCaseByID = (dataContextName, caseID) => {
      const resource = `${ctxStr(dataContextName)}.caseByID[${caseID}]`;
      return sendMessage("get", resource);
    };
    var getCaseBySearch = (dataContextName, collectionName, search2) => {
      const resource = `${ctxStr(dataContextName)}.${collStr(collectionName)}.caseSearch[${search2}]`;
      return sendMessage("get", resource);
    };
    var getCaseByFormulaSearch = (dataContextName, collectionName, search2) => {
      const resource = `${ctxStr(dataContextName)}.${collStr(collectionName)}.caseFormulaSearch[${search2}]`;
      return sendMessage("get", resource);
    };
    var createSingleOrParentCase = (dataContextName, collectionName, values) => {
      const resource = `${ctxStr(dataContextName)}.${collStr(collectionName)}.case`;
      return sendMessage("create", resource, values);
    };
    var createChildCase = (dataContextName, collectionName, parentCaseID, values) => {
      const resource = `${ctxStr(dataContextName)}.${collStr(collectionName)}.case`;
      const valuesWithParent = [
        {
          parent: parentCaseID,
          values
        }
      ];
      return sendMessage("create", resource, valuesWithParent);
    };
    var updateCaseById = (dataContextName, caseID, values) => {
      const resource = `${ctxStr(dataContextName)}.caseByID[${caseID}]`;
      const updateValues = {
        values
      };
      return sendMessage("update", resource, updateValues);
    };
    var updateCases = (dataContextName, collectionName, values) => {
      const resource = `${ctxStr(dataContextName)}.${collStr(collectionName)}.case`;
      return sendMessage("update", resource, values);
    };
    var getSelectionList = (dataContextName) => {
      return sendMessage("get", `${ctxStr(dataContextName)}.selectionList`);
    };
    var selectCases = (dataContextName, caseIds) => {
      return sendMessage("create", `${ctxStr(dataContextName)}.selectionList`, caseIds);
    };
    var addCasesToSelection = (dataContextName, caseIds) => {
      return sendMessage("update", `${ctxStr(dataContextName)}.selectionList`, caseIds);
    };
    var getItemCount = (dataContextName) => {
      return sendMessage("get", `${ctxStr(dataContextName)}.itemCount`);
    };
    var getAllItems = (dataContextName) => {
      return sendMessage("get", `${ctxStr(dataContextName)}.itemSearch[*]`);
    };
    var getItemByID = (dataContextName, itemID) => {
      return sendMessage("get", `${ctxStr(dataContextName)}.itemByID[${itemID}]`);
    };
    var getItemByIndex = (dataContextName, index) => {
      return sendMessage("get", `${ctxStr(dataContextName)}.item[${index}]`);
    };
    var getItemByCaseID = (dataContextName, caseID) => {
      return sendMessage("get", `${ctxStr(dataContextName)}.itemByCaseID[${caseID}]`);
    };
    var getItemBySearch = (dataContextName, search2) => {
      return sendMessage("get", `${ctxStr(dataContextName)}.itemSearch[${search2}]`);
    };
    var createItems = (dataContextName, items) => {
      return sendMessage("create", `${ctxStr(dataContextName)}.item`, items);
    };
    var updateItemByID = (dataContextName, itemID, values) => {
      return sendMessage("update", `${ctxStr(dataContextName)}.itemByID[${itemID}]`, values);
    };
    var updateItemByIndex = (dataContextName, index, values) => {
      return sendMessage("update", `${ctxStr(dataContextName)}.item[${index}]`, values);
    };
    var updateItemByCaseID = (dataContextName, caseID, values) => {
      return sendMessage("update", `${ctxStr(dataContextName)}.itemByCaseID[${caseID}]`, values);
    };
    exports.addCasesToSelection = addCasesToSelection;
    exports.addComponentListener = addComponentListener;
    exports.addDataContextChangeListener = addDataContextChangeListener;
    exports.addDataContextsListListener = addDataContextsListListener;
    exports.codapInterface = codapInterface2;
    exports.createChildCase = createChildCase;
    exports.createChildCollection = createChildCollection;
    exports.createCollectionFromAttribute = createCollectionFromAttribute;
    exports.createDataContext = createDataContext;
    exports.createDataContextFromURL = createDataContextFromURL;
    exports.createItems = createItems;
    exports.createNewAttribute = createNewAttribute;
    exports.createNewCollection = createNewCollection;
    exports.createParentCollection = createParentCollection;
    exports.createSingleOrParentCase = createSingleOrParentCase;
    exports.createTable = createTable;
    exports.ensureUniqueCollectionName = ensureUniqueCollectionName;
    exports.getAllItems = getAllItems;
    exports.getAttribute = getAttribute;
    exports.getAttributeList = getAttributeList;
    exports.getCaseByFormulaSearch = getCaseByFormulaSearch;
    exports.getCaseByID = getCaseByID;
    exports.getCaseByIndex = getCaseByIndex;
    exports.getCaseBySearch = getCaseBySearch;
    exports.getCaseCount = getCaseCount;
    exports.getCollection = getCollection;
    exports.getCollectionList = getCollectionList;
    exports.getDataContext = getDataContext;
    exports.getItemByCaseID = getItemByCaseID;
    exports.getItemByID = getItemByID;
    exports.getItemByIndex = getItemByIndex;
    exports.getItemBySearch = getItemBySearch;
    exports.getItemCount = getItemCount;
    exports.getListOfDataContexts = getListOfDataContexts;
    exports.getSelectionList = getSelectionList;
    exports.initializePlugin = initializePlugin2;
    exports.selectCases = selectCases;
    exports.selectSelf = selectSelf;
    exports.sendMessage = sendMessage;
    exports.updateAttribute = updateAttribute;
    exports.updateAttributePosition = updateAttributePosition;
    exports.updateCaseById = updateCaseById;
    exports.updateCases = updateCases;
    exports.updateItemByCaseID = updateItemByCaseID;
    exports.updateItemByID = updateItemByID;
    exports.updateItemByIndex = updateItemByIndex;
  }
});

// src/codap/page.ts
import { connect } from "../worker.js";

// src/codap/plugin/codapLink.ts
var import_codap_plugin_api = __toESM(require_codap_plugin_api(), 1);
var FRAME = { pluginName: "Signalbox relay", version: "1.0", dimensions: { width: 360, height: 520 } };
var PATIENCE = 3e4;
var ATTEMPTS = 10;
var CodapLink = class {
  #listeners = /* @__PURE__ */ new Map();
  constructor() {
    import_codap_plugin_api.codapInterface.setRequestTimeout(PATIENCE);
    import_codap_plugin_api.codapInterface.on("notify", "*", (notification) => this.#notice(notification));
  }
  /** The page is not in a frame, so that there is no CODAP around it. */
  get alone() {
    return window.parent === window;
  }
  /** Calls CODAP until it answers. Fails with the last reason. */
  async open() {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await (0, import_codap_plugin_api.initializePlugin)(FRAME);
        return;
      } catch (thrown) {
        if (attempt >= ATTEMPTS) throw thrown;
      }
    }
  }
  ask = async (request) => await import_codap_plugin_api.codapInterface.sendRequest(request);
  listen = (resource, listener) => {
    const listeners = this.#listeners.get(resource) ?? /* @__PURE__ */ new Set();
    this.#listeners.set(resource, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(resource);
    };
  };
  #notice({ resource, values }) {
    for (const listener of this.#listeners.get(resource) ?? []) listener({ resource, values });
    return { success: true };
  }
};

// src/demo/views/element.ts
function byId(id2) {
  const found = document.getElementById(id2);
  if (!found) throw new Error(`the page has no element ${id2}`);
  return found;
}

// src/demo/views/words.ts
function words({ state, standby, transport, reason, error, retryIn }) {
  const seconds = Math.ceil((retryIn ?? 0) / 1e3);
  switch (state) {
    case "connected":
      return standby ? "Connected, and standing by: another page serves this session." : `Connected${transport === "poll" ? " by polling" : ""}. Calls are answered here.`;
    case "connecting":
      return "Connecting…";
    case "reconnecting":
      return `Connection lost (${reason}). Trying again in ${seconds} s.`;
    case "error":
      return error === "session_expired" || error === "session_not_found" ? "The session is over or does not exist. Start a new one, or join another." : `Not connected: ${reason}`;
    default:
      return standby ? `Standing by: ${reason}.` : "Not connected.";
  }
}

// src/codap/plugin/pluginView.ts
var PluginView = class {
  #state = byId("state");
  #session = byId("session");
  #retry = byId("retry");
  #renew = byId("renew");
  #copied = byId("copied");
  constructor(actions) {
    this.#retry.addEventListener("click", () => actions.retry());
    this.#renew.addEventListener("click", () => actions.renew());
    byId("copy-code").addEventListener("click", () => void this.#copy("code", "The code"));
    byId("copy-address").addEventListener("click", () => void this.#copy("address", "The address"));
  }
  waitingForCodap() {
    this.#say("connecting", "Waiting for CODAP…");
    this.#retry.hidden = true;
  }
  /** There is no CODAP, and what a person can do about it. */
  withoutCodap(address, reason) {
    this.#say("error", reason === void 0 ? "This page works inside of CODAP." : `CODAP does not answer: ${reason}`);
    byId("install").hidden = false;
    byId("plugin-address").textContent = address;
    this.#retry.hidden = reason === void 0;
  }
  showState(change2) {
    byId("install").hidden = true;
    this.#say(change2.state, words(change2));
    this.#renew.hidden = false;
    if (change2.state === "error") this.#session.hidden = true;
  }
  showSession({ code }, base2) {
    this.#session.hidden = false;
    const shown = byId("code");
    shown.textContent = code;
    shown.setAttribute("aria-label", [...code].join(" "));
    byId("address").textContent = `${base2}/api/mcp`;
    this.#copied.textContent = "";
  }
  showCall({ tool, phase, error, duration }) {
    const took = duration === void 0 ? "" : ` in ${Math.round(duration)} ms`;
    const outcome = phase === "started" ? "is running" : error ? `failed: ${error.message}` : phase === "answered" ? `was done${took}` : phase;
    byId("call").textContent = `${tool} ${outcome}.`;
  }
  #say(state, text2) {
    if (this.#state.textContent !== text2) this.#state.textContent = text2;
    this.#state.dataset.state = state;
  }
  /** A frame is mostly forbidden to use the clipboard itself, but may copy what is selected. If it may not, a person can. */
  async #copy(id2, what) {
    const element = byId(id2);
    getSelection()?.selectAllChildren(element);
    const copied = document.execCommand("copy") || await navigator.clipboard?.writeText(element.textContent ?? "").then(() => true, () => false);
    this.#copied.textContent = copied ? `${what} is copied.` : `${what} is selected: press Control+C or ⌘C to copy it.`;
  }
};

// src/worker/toolError.ts
var ToolError = class extends Error {
  constructor(type, message, details) {
    super(message);
    this.type = type;
    this.details = details;
    this.name = "ToolError";
  }
  type;
  details;
};

// src/codap/tools/arguments.ts
function kind(value) {
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : typeof value === "object" ? "an object" : `the ${typeof value} ${JSON.stringify(value)}`;
}
var Arguments = class _Arguments {
  #members;
  #path;
  constructor(value, path = "") {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw wrong(path || "arguments", `must be an object, and is ${kind(value)}`);
    }
    this.#members = value;
    this.#path = path;
  }
  /** The members as they came. */
  get members() {
    return this.#members;
  }
  /** Where the member stands, as errors name it. */
  at(name) {
    return this.#path ? `${this.#path}.${name}` : name;
  }
  #read(name) {
    const value = Object.hasOwn(this.#members, name) ? this.#members[name] : void 0;
    return value === null ? void 0 : value;
  }
  #required(name, value) {
    if (value === void 0) throw wrong(this.at(name), "is missing");
    return value;
  }
  optionalText(name) {
    const value = this.#read(name);
    if (value !== void 0 && typeof value !== "string") throw wrong(this.at(name), `must be a string, and is ${kind(value)}`);
    return value;
  }
  text(name) {
    const value = this.#required(name, this.optionalText(name));
    if (value.trim() === "") throw wrong(this.at(name), "must not be empty");
    return value;
  }
  oneOf(name, values) {
    const value = this.optionalText(name);
    if (value === void 0) return void 0;
    const found = values.find((one) => one === value);
    if (found === void 0) throw wrong(this.at(name), `must be one of ${values.join(", ")}, and is ${kind(value)}`);
    return found;
  }
  optionalNumber(name, range = {}) {
    const value = this.#read(name);
    if (value === void 0) return void 0;
    if (typeof value !== "number" || !Number.isFinite(value)) throw wrong(this.at(name), `must be a number, and is ${kind(value)}`);
    if (range.whole && !Number.isInteger(value)) throw wrong(this.at(name), `must be a whole number, and is ${value}`);
    if (range.min !== void 0 && value < range.min) throw wrong(this.at(name), `must be at least ${range.min}, and is ${value}`);
    if (range.over !== void 0 && value <= range.over) throw wrong(this.at(name), `must be greater than ${range.over}, and is ${value}`);
    return value;
  }
  number(name, range = {}) {
    return this.#required(name, this.optionalNumber(name, range));
  }
  flag(name) {
    const value = this.#read(name) ?? false;
    if (typeof value !== "boolean") throw wrong(this.at(name), `must be true or false, and is ${kind(value)}`);
    return value;
  }
  /** Deleting has to be confirmed. */
  confirmed() {
    if (!this.flag("confirmDelete")) throw wrong(this.at("confirmDelete"), "must be true: what is deleted is gone");
  }
  id(name) {
    return id(this.#required(name, this.#read(name)), this.at(name));
  }
  ids(name) {
    return this.list(name).map((one, index) => id(one, `${this.at(name)}[${index}]`));
  }
  list(name) {
    return this.#required(name, this.optionalList(name));
  }
  optionalList(name) {
    const value = this.#read(name);
    if (value !== void 0 && !Array.isArray(value)) throw wrong(this.at(name), `must be a list, and is ${kind(value)}`);
    return value;
  }
  /** A list that must hold something. */
  filled(name) {
    const value = this.list(name);
    if (value.length === 0) throw wrong(this.at(name), "must not be empty");
    return value;
  }
  objects(name) {
    return this.filled(name).map((one, index) => new _Arguments(one, `${this.at(name)}[${index}]`));
  }
  optionalObjects(name) {
    return this.optionalList(name)?.map((one, index) => new _Arguments(one, `${this.at(name)}[${index}]`));
  }
  object(name) {
    return this.#required(name, this.optionalObject(name));
  }
  optionalObject(name) {
    const value = this.#read(name);
    return value === void 0 ? void 0 : new _Arguments(value, this.at(name));
  }
  /** A value to search for or to write. */
  value(name) {
    const value = this.#required(name, this.#read(name));
    if (typeof value === "string" || typeof value === "number" && Number.isFinite(value)) return value;
    throw wrong(this.at(name), `must be a string or a number, and is ${kind(value)}`);
  }
};
function id(value, path) {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (typeof value !== "string" || value === "") throw wrong(path, `must be an id (a string or a number), and is ${kind(value)}`);
  return /^\d{1,15}$/.test(value) ? Number(value) : value;
}
function wrong(argument, problem) {
  return new ToolError("invalid_args", `${argument} ${problem}`, { argument });
}
function present(members) {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== void 0));
}

// src/codap/tools/attributeDefinition.ts
var TYPES = ["numeric", "categorical", "date", "boundary", "qualitative"];
function attributeProperties(args) {
  return present({
    type: args.oneOf("type", TYPES),
    description: args.optionalText("description"),
    unit: args.optionalText("unit"),
    formula: args.optionalText("formula")
  });
}
function attributeDefinition(args) {
  return { name: args.text("name"), ...attributeProperties(args) };
}
function attributes(args, name) {
  return args.optionalObjects(name)?.map(attributeDefinition);
}
function answered(values, definition) {
  if (typeof values !== "object" || values === null) return definition;
  const { attrs } = values;
  return Array.isArray(attrs) ? attrs[0] ?? definition : values;
}

// src/codap/tools/resource.ts
function selected(key, name, argument) {
  const text2 = String(name);
  if (text2.includes("]")) {
    throw wrong(argument, `must not contain "]", which ends a name in CODAP's selectors; give the numeric id instead`);
  }
  return `${key}[${text2}]`;
}
var ContextResource = class {
  constructor(name, argument) {
    this.name = name;
    this.path = selected("dataContext", name, argument);
  }
  name;
  path;
  /** A resource of the data context: `dataContext[Mammals].collectionList`. */
  of(key) {
    return `${this.path}.${key}`;
  }
  itemById(id2, argument) {
    return this.of(selected("itemByID", id2, argument));
  }
  collection(name, argument) {
    return new CollectionResource(this, name, argument);
  }
};
var CollectionResource = class {
  constructor(context, name, argument) {
    this.context = context;
    this.name = name;
    this.path = context.of(selected("collection", name, argument));
  }
  context;
  name;
  path;
  of(key) {
    return `${this.path}.${key}`;
  }
  attribute(name, argument) {
    return this.of(selected("attribute", name, argument));
  }
  attributeLocation(name, argument) {
    return this.of(selected("attributeLocation", name, argument));
  }
};

// src/codap/tools/contexts.ts
function contextOf(args, argument) {
  return new ContextResource(args.text(argument), args.at(argument));
}
async function structureOf(context, codap2) {
  const { values } = await codap2.get(context.path);
  const collections = Array.isArray(values?.collections) ? values.collections : void 0;
  const attributes2 = collections?.flatMap(({ attrs = [] }) => attrs.map(({ name }) => name));
  return { name: typeof values?.name === "string" ? values.name : context.name, collections, attributes: attributes2 };
}
function collectionDefinition(args) {
  return present({
    name: args.text("name"),
    title: args.optionalText("title"),
    description: args.optionalText("description"),
    attrs: attributes(args, "attrs")
  });
}
async function create(args, codap2, collections) {
  const values = present({
    name: args.text("name"),
    title: args.optionalText("title"),
    description: args.optionalText("description"),
    collections
  });
  const { values: made } = await codap2.create("dataContext", values);
  return { dataContext: made ?? { name: values.name } };
}
async function list(codap2) {
  const dataContexts = await codap2.list("dataContextList");
  return { dataContexts, count: dataContexts.length };
}
async function read(context, codap2) {
  const { values } = await codap2.get(context.path);
  return { dataContext: values };
}
async function update(args, codap2) {
  const context = contextOf(args, "name");
  const description = args.optionalText("description");
  const title = newTitle(args);
  if (title === void 0 && description === void 0) throw wrong("arguments", "must hold something to change: newName, title or description");
  const metadata = description === void 0 ? void 0 : { description };
  await codap2.update(context.path, present({ title, description, metadata }));
  return { updated: true, dataContext: present({ name: context.name, title, description }) };
}
function newTitle(args) {
  const newName = args.optionalText("newName");
  const title = args.optionalText("title");
  if (newName !== void 0 && title !== void 0 && newName !== title) {
    throw wrong("newName", "cannot differ from title: CODAP keeps the name that it was created with and shows the title");
  }
  return title ?? newName;
}
async function remove(context, codap2) {
  await codap2.delete(context.path);
  return { deleted: true, dataContext: { name: context.name } };
}
var contextTools = {
  create_data_context: (args, codap2) => create(args, codap2),
  get_data_contexts: (_, codap2) => list(codap2),
  get_data_context: (args, codap2) => read(contextOf(args, "name"), codap2),
  update_data_context: update,
  delete_data_context: async (args, codap2) => {
    args.confirmed();
    return remove(contextOf(args, "name"), codap2);
  },
  createDataContext: (args, codap2) => {
    args.list("collections");
    const collections = args.optionalObjects("collections") ?? [];
    return create(args, codap2, collections.length > 0 ? collections.map(collectionDefinition) : void 0);
  },
  getListOfDataContexts: (_, codap2) => list(codap2),
  getDataContext: (args, codap2) => read(contextOf(args, "dataContext"), codap2),
  deleteDataContext: (args, codap2) => remove(contextOf(args, "dataContext"), codap2)
};

// src/codap/tools/collections.ts
var DOCUMENT = { context: "dataContextName", collection: "collectionName" };
var LATER = { context: "dataContext", collection: "collection" };
function collectionOf(args, { context, collection }) {
  return contextOf(args, context).collection(args.text(collection), args.at(collection));
}
async function knownCollection(args, argument, context, codap2) {
  const name = args.optionalText(argument);
  if (name === void 0) return void 0;
  const { values } = await codap2.get(context.collection(args.text(argument), args.at(argument)).path);
  return values ?? { name };
}
async function create2(context, collection, codap2) {
  const { values } = await codap2.create(context.of("collection"), [collection]);
  const [made] = Array.isArray(values) ? values : [values];
  return { collection: made ?? { name: collection.name } };
}
async function list2(context, codap2) {
  const collections = await codap2.list(context.of("collectionList"));
  return { collections, count: collections.length };
}
async function read2(collection, codap2) {
  const { values } = await codap2.get(collection.path);
  return { collection: values };
}
async function update2(args, codap2) {
  const collection = collectionOf(args, DOCUMENT);
  const title = newTitle(args);
  if (title === void 0) throw wrong("arguments", "must hold something to change: newName or title");
  await codap2.update(collection.path, { title });
  return { updated: true, collection: { name: collection.name, title } };
}
async function remove2(args, codap2) {
  args.confirmed();
  const collection = collectionOf(args, DOCUMENT);
  await codap2.delete(collection.path);
  return { deleted: true, collection: { name: collection.name } };
}
var collectionTools = {
  create_collection: (args, codap2) => {
    const collection = present({ name: args.text("collectionName"), parent: args.optionalText("parent"), attrs: attributes(args, "attributes") });
    return create2(contextOf(args, "dataContextName"), collection, codap2);
  },
  get_collections: (args, codap2) => list2(contextOf(args, "dataContextName"), codap2),
  get_collection: (args, codap2) => read2(collectionOf(args, DOCUMENT), codap2),
  update_collection: update2,
  delete_collection: remove2,
  createCollection: (args, codap2) => {
    const given = args.object("collection");
    const collection = present({
      name: given.text("name"),
      title: given.optionalText("title"),
      description: given.optionalText("description"),
      parent: given.optionalText("parent"),
      attrs: attributes(given, "attrs")
    });
    return create2(contextOf(args, "dataContext"), collection, codap2);
  },
  getCollectionList: (args, codap2) => list2(contextOf(args, "dataContext"), codap2),
  getCollection: (args, codap2) => read2(collectionOf(args, LATER), codap2)
};

// src/codap/tools/attributes.ts
async function create3(collection, attribute2, codap2) {
  const { values } = await codap2.create(collection.of("attribute"), [attribute2]);
  return { attribute: answered(values, attribute2) };
}
async function list3(collection, codap2) {
  const attributes2 = await codap2.list(collection.of("attributeList"));
  return { attributes: attributes2, count: attributes2.length };
}
async function read3(args, naming, argument, codap2) {
  const { values } = await codap2.get(collectionOf(args, naming).attribute(args.text(argument), argument));
  return { attribute: values };
}
async function update3(resource, name, changes, codap2) {
  if (Object.keys(changes).length === 0) throw wrong("arguments", "must hold something to change");
  const { values } = await codap2.update(resource, changes);
  return { updated: true, attribute: answered(values, { name, ...changes }) };
}
async function remove3(args, naming, argument, codap2) {
  const name = args.text(argument);
  await codap2.delete(collectionOf(args, naming).attribute(name, argument));
  return { deleted: true, attribute: { name } };
}
async function reorder(args, codap2) {
  const collection = collectionOf(args, DOCUMENT);
  const name = args.text("attributeName");
  const position2 = args.number("newPosition", { whole: true, min: 0 });
  await codap2.update(collection.attributeLocation(name, "attributeName"), { collection: collection.name, position: position2 });
  return { updated: true, attribute: { name, collection: collection.name, position: position2 } };
}
var attributeTools = {
  create_attribute: (args, codap2) => {
    const name = args.text("attributeName");
    args.text("type");
    return create3(collectionOf(args, DOCUMENT), { name, ...attributeProperties(args) }, codap2);
  },
  get_attributes: (args, codap2) => list3(collectionOf(args, DOCUMENT), codap2),
  get_attribute: (args, codap2) => read3(args, DOCUMENT, "attributeName", codap2),
  update_attribute: (args, codap2) => {
    const name = args.text("attributeName");
    const newName = args.optionalText("newName") === void 0 ? {} : { name: args.text("newName") };
    return update3(collectionOf(args, DOCUMENT).attribute(name, "attributeName"), name, { ...newName, ...attributeProperties(args) }, codap2);
  },
  delete_attribute: async (args, codap2) => {
    args.confirmed();
    return remove3(args, DOCUMENT, "attributeName", codap2);
  },
  reorder_attributes: reorder,
  createAttribute: (args, codap2) => create3(collectionOf(args, LATER), attributeDefinition(args.object("attribute")), codap2),
  getAttributeList: (args, codap2) => list3(collectionOf(args, LATER), codap2),
  getAttribute: (args, codap2) => read3(args, LATER, "attribute", codap2),
  updateAttribute: (args, codap2) => {
    const attribute2 = args.object("attribute");
    const name = attribute2.text("name");
    return update3(collectionOf(args, LATER).attribute(name, attribute2.at("name")), name, attributeProperties(attribute2), codap2);
  },
  deleteAttribute: (args, codap2) => remove3(args, LATER, "attribute", codap2)
};

// src/codap/tools/query.ts
var OPERATORS = ["equals", "contains", "startsWith", "endsWith", "greaterThan", "lessThan"];
function formula({ attribute: attribute2, operator, value }) {
  const name = attributeName(attribute2);
  switch (operator) {
    case "equals":
      return `${name} = ${literal(value)}`;
    case "greaterThan":
      return `${name} > ${ordered(value)}`;
    case "lessThan":
      return `${name} < ${ordered(value)}`;
    case "contains":
      return `includes(${name}, ${text(String(value))})`;
    case "startsWith":
      return `beginsWith(${name}, ${text(String(value))})`;
    case "endsWith":
      return `endsWith(${name}, ${text(String(value))})`;
  }
}
function attributeName(name) {
  if (name.includes("]")) {
    throw wrong("searchCriteria.attributeName", `must not contain "]", which ends a search in CODAP's selectors; rename the attribute first`);
  }
  return `\`${name.replace(/[\\`]/g, "\\$&")}\``;
}
function literal(value) {
  return typeof value === "number" ? String(value) : text(value);
}
function ordered(value) {
  if (typeof value === "number") return String(value);
  return value.trim() !== "" && Number.isFinite(Number(value)) ? String(Number(value)) : text(value);
}
function text(value) {
  const escaped = value.replace(/["\\]/g, "\\$&").replace(/[\u0000-\u001f\u007f\u2028\u2029[\]`]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
  return `"${escaped}"`;
}

// src/codap/tools/cases.ts
var SEARCH_LIMIT = 100;
async function count(resource, codap2) {
  const { values } = await codap2.get(resource);
  return { count: values };
}
async function byIndex(args, codap2) {
  const index = args.number("index", { whole: true, min: 0 });
  const { values } = await codap2.get(collectionOf(args, DOCUMENT).of(`caseByIndex[${index}]`));
  return { case: values?.case ?? values, index: values?.caseIndex ?? index };
}
async function search(args, codap2) {
  const collection = collectionOf(args, DOCUMENT);
  const criteria = args.object("searchCriteria");
  const query = formula({
    attribute: criteria.text("attributeName"),
    operator: criteria.oneOf("operator", OPERATORS) ?? "equals",
    value: criteria.value("value")
  });
  const limit = args.optionalNumber("limit", { whole: true, min: 0 }) ?? SEARCH_LIMIT;
  const found = await codap2.list(collection.of(`caseFormulaSearch[${query}]`));
  const cases = found.slice(0, limit);
  return { cases, count: cases.length, total: found.length };
}
var caseTools = {
  get_case_count: (args, codap2) => count(collectionOf(args, DOCUMENT).of("caseCount"), codap2),
  get_case_by_index: byIndex,
  search_cases: search,
  getItemCount: (args, codap2) => {
    const whole = args.optionalText("collection") === void 0;
    return count(whole ? contextOf(args, "dataContext").of("itemCount") : collectionOf(args, LATER).of("caseCount"), codap2);
  }
};

// src/codap/tools/codap.ts
var Codap = class {
  #ask;
  #signal;
  constructor(ask, signal) {
    this.#ask = ask;
    this.#signal = signal;
  }
  /** The answer, which may be a refusal. */
  async try(request) {
    if (this.#signal.aborted) throw new ToolError("execution_error", "the call was cancelled before CODAP was asked", { request });
    let answer;
    try {
      answer = await this.#ask(request);
    } catch (thrown) {
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      throw new ToolError("codap_error", `CODAP did not answer: ${reason}`, { request: short(request) });
    }
    if (typeof answer !== "object" || answer === null) throw new ToolError("codap_error", "CODAP's answer is no object", { request: short(request) });
    return answer;
  }
  async #send(request) {
    const answer = await this.try(request);
    if (!answer.success) throw new ToolError("codap_error", refusal(answer, request), { request: short(request) });
    return answer;
  }
  get(resource) {
    return this.#send({ action: "get", resource });
  }
  create(resource, values) {
    return this.#send({ action: "create", resource, values });
  }
  update(resource, values) {
    return this.#send({ action: "update", resource, values });
  }
  delete(resource) {
    return this.#send({ action: "delete", resource });
  }
  /** What a resource that lists has; an answer without a list is an empty one. */
  async list(resource) {
    const { values } = await this.get(resource);
    return Array.isArray(values) ? values : [];
  }
};
function refusal(answer, request) {
  const said = answer.values?.error;
  return typeof said === "string" && said !== "" ? said : `CODAP refused to ${request.action} ${request.resource} and gave no reason`;
}
function short({ action, resource }) {
  return { action, resource };
}

// src/codap/tools/components.ts
function position(args) {
  const given = args.optionalObject("position");
  return given && present({ left: given.optionalNumber("x"), top: given.optionalNumber("y") });
}
function newPosition(args) {
  const given = position(args);
  return given && { left: given.left ?? 0, top: given.top ?? 0 };
}
function dimensions(args) {
  if (args === void 0) return void 0;
  const given = present({ width: args.optionalNumber("width", { over: 0 }), height: args.optionalNumber("height", { over: 0 }) });
  return Object.keys(given).length > 0 ? given : void 0;
}
function frame(args) {
  const size = dimensions(args.optionalObject("dimensions") ?? args);
  return { title: args.optionalText("title"), position: newPosition(args), dimensions: size };
}
async function createComponent(values, codap2, notes = []) {
  const wanted = present(values);
  const { values: made } = await codap2.create("component", wanted);
  const component = made ?? present({ type: values.type, title: values.title });
  return { component, ...notes.length > 0 && { notes } };
}
function table(args, argument, codap2) {
  return createComponent({ type: "caseTable", dataContext: contextOf(args, argument).name, ...frame(args) }, codap2);
}
function attribute(args, argument, { name, attributes: attributes2 }) {
  const wanted = args.optionalText(argument);
  if (wanted !== void 0 && attributes2 !== void 0 && !attributes2.includes(wanted)) {
    throw wrong(argument, `is no attribute of ${name}: ${JSON.stringify(wanted)}; there are ${attributes2.join(", ") || "none"}`);
  }
  return wanted;
}
var PLOTS = {
  scatterPlot: void 0,
  linePlot: { showConnectingLines: true },
  histogram: { pointsAreFusedIntoBars: true },
  boxPlot: "Box Plot"
};
var GRAPH_TYPES = Object.keys(PLOTS);
async function graph(args, codap2) {
  const type = args.oneOf("graphType", GRAPH_TYPES) ?? "scatterPlot";
  if (type !== "scatterPlot" && args.optionalText("xAttribute") === void 0 && args.optionalText("yAttribute") === void 0) {
    throw wrong("xAttribute", `or yAttribute is needed for a ${type}`);
  }
  const look = frame(args);
  const context = await structureOf(contextOf(args, "dataContextName"), codap2);
  const axes = { xAttributeName: attribute(args, "xAttribute", context), yAttributeName: attribute(args, "yAttribute", context) };
  const made = await createComponent({ type: "graph", dataContext: context.name, ...axes, ...look }, codap2);
  const plot = PLOTS[type];
  const { id: id2 } = made.component;
  if (plot === void 0 || typeof id2 !== "number" && typeof id2 !== "string") return made;
  const component = selected("component", id2, "component");
  const request = plot === "Box Plot" ? { action: "create", resource: `${component}.adornment`, values: { type: plot } } : { action: "update", resource: component, values: plot };
  const answer = await codap2.try(request);
  return answer.success ? made : { ...made, notes: [`The graph was made, but not as a ${type}: ${refusal(answer, request)}`] };
}
async function plainGraph(args, codap2) {
  const look = frame(args);
  const context = await structureOf(contextOf(args, "dataContext"), codap2);
  const axes = {
    xAttributeName: attribute(args, "xAttributeName", context),
    yAttributeName: attribute(args, "yAttributeName", context),
    legendAttributeName: attribute(args, "legendAttributeName", context)
  };
  return createComponent({ type: "graph", dataContext: context.name, ...axes, ...look }, codap2);
}
var COORDINATES = { latitudeAttribute: /^lat(itude?)?$/i, longitudeAttribute: /^(lon|lng|long|longitude?)$/i };
async function map(args, codap2) {
  const look = frame(args);
  const context = await structureOf(contextOf(args, "dataContextName"), codap2);
  const notes = Object.entries(COORDINATES).flatMap(([argument, pattern]) => {
    const name = attribute(args, argument, context);
    if (name === void 0 || pattern.test(name)) return [];
    return [`CODAP takes coordinates from attributes with names such as Latitude and Longitude; ${name} (${argument}) may have to be renamed.`];
  });
  return createComponent({ type: "map", dataContext: context.name, ...look }, codap2, notes);
}
async function list4(codap2) {
  const components = await codap2.list("componentList");
  return { components, count: components.length };
}
async function read4(id2, argument, codap2) {
  const { values } = await codap2.get(selected("component", id2, argument));
  return { component: values };
}
async function update4(args, argument, codap2) {
  const id2 = args.id(argument);
  const changes = present({ title: args.optionalText("title"), position: position(args), dimensions: dimensions(args.optionalObject("dimensions")) });
  if (Object.keys(changes).length === 0) throw wrong("arguments", "must hold something to change: title, position or dimensions");
  await codap2.update(selected("component", id2, argument), changes);
  return { updated: true, component: { id: id2, ...changes } };
}
async function remove4(id2, argument, codap2) {
  await codap2.delete(selected("component", id2, argument));
  return { deleted: true, component: { id: id2 } };
}
var componentTools = {
  create_table: (args, codap2) => table(args, "dataContextName", codap2),
  create_graph: graph,
  create_map: map,
  get_components: (_, codap2) => list4(codap2),
  update_component: (args, codap2) => update4(args, "componentId", codap2),
  delete_component: async (args, codap2) => {
    args.confirmed();
    return remove4(args.id("componentId"), "componentId", codap2);
  },
  createTable: (args, codap2) => table(args, "dataContext", codap2),
  createGraph: plainGraph,
  getAllComponents: (_, codap2) => list4(codap2),
  getComponent: (args, codap2) => read4(args.id("component"), "component", codap2),
  updateComponent: (args, codap2) => update4(args, "component", codap2),
  deleteComponent: (args, codap2) => remove4(args.id("component"), "component", codap2)
};

// src/codap/tools/items.ts
var canonical = (name) => String(name).trim().replace(/\W/gu, "_");
async function create4(args, context, collection, codap2) {
  const items = args.objects("items").map(({ members }) => members);
  const { name, collections, attributes: attributes2 } = await structureOf(context, codap2);
  const wanted = collection === void 0 ? void 0 : args.text(collection);
  if (collection !== void 0 && collections?.some(({ id: id2, name: name2, title }) => [String(id2), name2, title].includes(wanted)) === false) {
    const there = collections.map((one) => one.name).join(", ") || "none";
    throw wrong(collection, `is no collection of ${name}: ${JSON.stringify(wanted)}; there are ${there}`);
  }
  const known = new Set(attributes2?.map(canonical));
  const unknownAttributes = attributes2 === void 0 ? [] : [...new Set(items.flatMap(Object.keys))].filter((one) => !known.has(canonical(one)));
  const { itemIDs = [], caseIDs = [] } = await codap2.create(context.of("item"), items);
  return { itemIDs, caseIDs, count: items.length, ...unknownAttributes.length > 0 && { unknownAttributes } };
}
async function columns(args, context, codap2) {
  if (args.optionalText("collection") === void 0) return void 0;
  const collection = context.collection(args.text("collection"), args.at("collection"));
  const attributes2 = await codap2.list(collection.of("attributeList"));
  return new Set(attributes2.map(({ name }) => name));
}
function cut(item, columns2) {
  if (columns2 === void 0 || item.values === void 0) return item;
  return { ...item, values: Object.fromEntries(Object.entries(item.values).filter(([name]) => columns2.has(name))) };
}
async function list5(context, codap2, limit, wanted) {
  const all = await codap2.list(context.of("itemSearch[*]"));
  const items = all.slice(0, limit).map((item) => cut(item, wanted));
  return { items, count: items.length, total: all.length };
}
async function read5(context, id2, argument, codap2, wanted) {
  const { values } = await codap2.get(context.itemById(id2, argument));
  return { item: cut(values ?? { id: id2 }, wanted) };
}
async function update5(context, changes, codap2) {
  const { values } = await codap2.update(context.of("item"), changes);
  const ids = (name) => Array.isArray(values?.[name]) ? values[name] : [];
  const changed = ids("changedCases");
  const notFound = Array.isArray(values?.changedCases) ? changes.map(({ id: id2 }) => id2).filter((id2) => !changed.includes(id2)) : [];
  return { updated: true, count: changes.length - notFound.length, notFound, createdCases: ids("createdCases"), deletedCases: ids("deletedCases") };
}
async function remove5(context, ids, argument, codap2) {
  const requests = ids.map((id2, index) => {
    return [id2, { action: "delete", resource: context.itemById(id2, `${argument}[${index}]`) }];
  });
  const deleted = [];
  const failed = [];
  for (const [id2, request] of requests) {
    const answer = await codap2.try(request);
    if (answer.success) deleted.push(id2);
    else failed.push({ id: id2, message: refusal(answer, request) });
  }
  const [first] = failed;
  if (first !== void 0) {
    throw new ToolError("codap_error", `${failed.length} of ${ids.length} items could not be deleted; item ${first.id}: ${first.message}`, { deleted, failed });
  }
  return { deleted: true, itemIDs: deleted, count: deleted.length };
}
function filled(ids, argument) {
  if (ids.length === 0) throw wrong(argument, "must not be empty");
  return ids;
}
function change(item) {
  const { id: _, ...beside } = item.members;
  const names = Object.keys(beside);
  const values = names.length === 1 && typeof beside.values === "object" ? item.object("values").members : beside;
  if (Object.keys(values).length === 0) throw wrong(item.at("id"), "has no values beside it to write");
  return { id: item.id("id"), values };
}
var itemTools = {
  create_items: (args, codap2) => create4(args, contextOf(args, "dataContextName"), "collectionName", codap2),
  get_items: (args, codap2) => list5(contextOf(args, "dataContextName"), codap2, args.optionalNumber("limit", { whole: true, min: 0 })),
  get_item_by_id: (args, codap2) => read5(contextOf(args, "dataContextName"), args.id("itemId"), "itemId", codap2),
  update_items: (args, codap2) => {
    const changes = args.objects("updates").map((one) => ({ id: one.id("id"), values: one.object("values").members }));
    return update5(contextOf(args, "dataContextName"), changes, codap2);
  },
  delete_items: async (args, codap2) => {
    args.confirmed();
    return remove5(contextOf(args, "dataContextName"), filled(args.ids("itemIds"), "itemIds"), "itemIds", codap2);
  },
  createItems: (args, codap2) => {
    const collection = args.optionalText("collection") === void 0 ? void 0 : "collection";
    return create4(args, contextOf(args, "dataContext"), collection, codap2);
  },
  getAllItems: async (args, codap2) => {
    const context = contextOf(args, "dataContext");
    return list5(context, codap2, void 0, await columns(args, context, codap2));
  },
  getItemByID: async (args, codap2) => {
    const context = contextOf(args, "dataContext");
    const id2 = args.id("itemID");
    return read5(context, id2, "itemID", codap2, await columns(args, context, codap2));
  },
  updateItems: async (args, codap2) => {
    const context = contextOf(args, "dataContext");
    const changes = args.objects("items").map(change);
    await knownCollection(args, "collection", context, codap2);
    return update5(context, changes, codap2);
  },
  deleteItems: async (args, codap2) => {
    const context = contextOf(args, "dataContext");
    const ids = filled(args.ids("items"), "items");
    await knownCollection(args, "collection", context, codap2);
    return remove5(context, ids, "items", codap2);
  }
};

// src/codap/tools/notifications.ts
var NOTICES_KEPT = 100;
var RESOURCES_LISTENED = 50;
var KINDS = [
  [/^dataContextChangeNotice\[([^\]]+)\]$/, ([, name]) => ["get", `dataContext[${name}]`]],
  [/^component\[([^\]]+)\]$/, ([, name]) => ["get", `component[${name}]`]],
  [/^global\[([^\]]+)\]$/, ([, name]) => ["get", `global[${name}]`]],
  [/^document$/, () => ["update", "interactiveFrame", { subscribeToDocuments: true }, { subscribeToDocuments: false }]],
  [/^(?:component|documentChangeNotice|undoChangeNotice|dragDrop\[attribute\])$/, () => ["get", "interactiveFrame"]]
];
var Subscription = class {
  constructor(request, callback, listen) {
    this.request = request;
    this.callback = callback;
    this.stop = listen(request, (notice) => this.#keep(notice));
  }
  request;
  callback;
  #kept = [];
  #dropped = 0;
  stop;
  #keep(notice) {
    this.#kept.push(notice);
    if (this.#kept.length <= NOTICES_KEPT) return;
    this.#kept.shift();
    this.#dropped += 1;
  }
  /** What came since the last time. */
  fetch(registered) {
    const notifications = this.#kept.map(({ resource, values }) => ({ resource, values }));
    const dropped = this.#dropped;
    this.#kept = [];
    this.#dropped = 0;
    return { registered, ...present({ request: this.request, callback: this.callback }), notifications, dropped };
  }
};
function kindOf(request) {
  for (const [pattern, asked] of KINDS) {
    const match = pattern.exec(request);
    if (match !== null) return asked(match);
  }
  const known = "dataContextChangeNotice[NAME], documentChangeNotice, component, component[ID], global[NAME], undoChangeNotice, dragDrop[attribute] or document";
  throw wrong("request", `must be ${known}, and is ${JSON.stringify(request)}`);
}
function notificationTools(listen) {
  const subscriptions = /* @__PURE__ */ new Map();
  async function register(args, codap2) {
    const request = args.text("request");
    const callback = args.optionalText("callback");
    const [action, resource, on] = kindOf(request);
    const known = subscriptions.get(request);
    if (known !== void 0) {
      known.callback = callback ?? known.callback;
      return known.fetch(true);
    }
    if (listen === void 0) throw new ToolError("execution_error", "this page gets no notifications");
    if (subscriptions.size >= RESOURCES_LISTENED) throw wrong("request", `would be one too many: ${subscriptions.size} are registered`);
    await (action === "get" ? codap2.get(resource) : codap2.update(resource, on));
    const subscription = new Subscription(request, callback, listen);
    subscriptions.set(request, subscription);
    return subscription.fetch(true);
  }
  async function unregister(args, codap2) {
    const request = args.text("request");
    const [action, resource, , off] = kindOf(request);
    const subscription = subscriptions.get(request);
    if (subscription === void 0) throw wrong("request", `is not registered: ${JSON.stringify(request)}`);
    if (action === "update") await codap2.update(resource, off);
    subscription.stop();
    subscriptions.delete(request);
    return subscription.fetch(false);
  }
  return { registerForNotifications: register, unregisterForNotifications: unregister };
}

// src/codap/tools/selection.ts
async function read6(context, codap2, collection) {
  const all = await codap2.list(context.of("selectionList"));
  const selection = collection === void 0 ? all : all.filter((one) => {
    return collection.id === void 0 ? one.collectionName === collection.name : one.collectionID === collection.id;
  });
  return { selection, count: selection.length };
}
async function select(context, ids, extend, codap2) {
  const resource = context.of("selectionList");
  await (extend ? codap2.update(resource, ids) : codap2.create(resource, ids));
  return read6(context, codap2);
}
async function clear(context, codap2) {
  await codap2.create(context.of("selectionList"), []);
  return { selection: [], count: 0 };
}
var selectionTools = {
  get_selection: (args, codap2) => read6(contextOf(args, "dataContextName"), codap2),
  select_cases: (args, codap2) => select(contextOf(args, "dataContextName"), args.ids("caseIds"), args.flag("extend"), codap2),
  clear_selection: (args, codap2) => clear(contextOf(args, "dataContextName"), codap2),
  getSelectedItems: async (args, codap2) => {
    const context = contextOf(args, "dataContext");
    return read6(context, codap2, await knownCollection(args, "collection", context, codap2));
  },
  selectItems: async (args, codap2) => {
    const context = contextOf(args, "dataContext");
    const [ids, extend] = [args.ids("items"), args.flag("extend")];
    await knownCollection(args, "collection", context, codap2);
    return select(context, ids, extend, codap2);
  },
  deselectAll: (args, codap2) => clear(contextOf(args, "dataContext"), codap2)
};

// src/codap/tools/widgets.ts
var WEB_VIEW = { width: 480, height: 360 };
async function slider(args, codap2) {
  const name = args.text("name");
  const [lowerBound, upperBound] = [args.number("min"), args.number("max")];
  if (upperBound <= lowerBound) throw wrong("max", `must be greater than min (${lowerBound}), and is ${upperBound}`);
  const value = args.optionalNumber("value") ?? lowerBound;
  if (value < lowerBound || value > upperBound) throw wrong("value", `must lie between min and max, and is ${value}`);
  const multipleOf = args.optionalNumber("step", { over: 0 });
  const component = { type: "slider", title: args.text("title"), globalValueName: name, lowerBound, upperBound, multipleOf, position: newPosition(args) };
  await codap2.create("global", { name, value });
  return createComponent(component, codap2);
}
async function calculator(args, codap2) {
  const wanted = { type: "calculator", title: args.optionalText("title"), position: newPosition(args) };
  const components = await codap2.list("componentList");
  const shown = components.find(({ type, hidden }) => type === "calculator" && hidden !== true);
  return shown === void 0 ? createComponent(wanted, codap2) : { component: shown };
}
function webAddress(args) {
  const given = args.text("URL");
  const address = URL.canParse(given) ? new URL(given) : void 0;
  if (address === void 0 || !["http:", "https:"].includes(address.protocol)) {
    throw wrong("URL", `must be a whole http or https address, and is ${JSON.stringify(given)}`);
  }
  return address.href;
}
var TOLD = ["id", "name", "title", "version", "dimensions", "codapVersion", "lang", "locale"];
async function initialize(args, codap2) {
  const given = { name: args.text("name"), title: args.text("title"), version: args.text("version") };
  await codap2.update("interactiveFrame", given);
  const { values } = await codap2.get("interactiveFrame");
  const told = Object.fromEntries(TOLD.map((name) => [name, values?.[name]]));
  return { interactiveFrame: { ...given, ...present(told) } };
}
var widgetTools = {
  initializePlugin: initialize,
  createSlider: slider,
  createCalculator: calculator,
  createText: (args, codap2) => {
    return createComponent({ type: "text", title: args.optionalText("title"), text: args.text("text"), position: newPosition(args) }, codap2);
  },
  createWebView: (args, codap2) => {
    return createComponent({ type: "webView", title: args.optionalText("title"), URL: webAddress(args), dimensions: WEB_VIEW, position: newPosition(args) }, codap2);
  }
};

// src/codap/tools/index.ts
function toolHandlers(ask, listen) {
  const tools = {
    ...contextTools,
    ...collectionTools,
    ...attributeTools,
    ...itemTools,
    ...caseTools,
    ...selectionTools,
    ...componentTools,
    ...widgetTools,
    ...notificationTools(listen)
  };
  return Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, handler(tool, ask)]));
}
function handler(tool, ask) {
  return async (args, { signal }) => tool(new Arguments(args ?? {}), new Codap(ask, signal));
}

// src/codap/page.ts
var base = new URL("../..", import.meta.url).href.replace(/\/$/, "");
var codap = new CodapLink();
var handlers = toolHandlers(codap.ask, codap.listen);
var worker;
var view = new PluginView({ retry: () => void start(), renew: () => serve(true) });
async function start() {
  const address = `${location.origin}${location.pathname}`;
  if (codap.alone) return view.withoutCodap(address, void 0);
  view.waitingForCodap();
  try {
    await codap.open();
  } catch (thrown) {
    return view.withoutCodap(address, thrown instanceof Error ? thrown.message : String(thrown));
  }
  serve(false);
}
function serve(fresh) {
  worker?.stop();
  const current = connect({ url: base, handlers, fresh });
  worker = current;
  current.on("state", (change2) => current === worker && view.showState(change2));
  current.on("session", (session) => current === worker && view.showSession(session, base));
  current.on("call", (event) => view.showCall(event));
  current.on("problem", ({ message }) => console.warn(message));
  current.ready.catch(() => void 0);
}
void start();
